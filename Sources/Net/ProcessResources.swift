import CLinux

/// Resources that the operating system grants this process.
package enum ProcessResources {
    /// Raises the limit on open files as far as permitted, because every WebSocket needs one and the usual limit is
    /// 1,024.
    /// - Returns: the limit now in force; nil if it could not be read.
    @discardableResult
    package static func raiseOpenFileLimit() -> Int? {
        let limit = clinux_raise_open_files()
        return limit < 0 ? nil : Int(clamping: limit)
    }

    /// Resident memory (RSS) in bytes; nil if `/proc` cannot be read.
    package static func residentBytes() -> Int? {
        let bytes = clinux_resident_bytes()
        return bytes < 0 ? nil : Int(clamping: bytes)
    }

    /// Numbers of the CPUs that this process may run on.
    package static func processors() -> [Int] {
        (0..<max(Int(clinux_cpu_count()), 1)).compactMap { index in
            let cpu = clinux_cpu_at(Int32(clamping: index))
            return cpu < 0 ? nil : Int(cpu)
        }
    }
}
