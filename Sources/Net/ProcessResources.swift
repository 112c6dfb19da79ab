import CLinux

/// What the operating system gives this process.
package enum ProcessResources {
    /// Raises the limit on open files as far as permitted: the usual 1,024 are soon gone with a WebSocket each.
    /// - Returns: the limit that holds now; nil if it could not be read.
    @discardableResult
    package static func raiseOpenFileLimit() -> Int? {
        let limit = clinux_raise_open_files()
        return limit < 0 ? nil : Int(clamping: limit)
    }

    /// Bytes of memory resident now (RSS); nil if `/proc` cannot be read.
    package static func residentBytes() -> Int? {
        let bytes = clinux_resident_bytes()
        return bytes < 0 ? nil : Int(clamping: bytes)
    }

    /// The CPUs this process may run on, by number.
    package static func processors() -> [Int] {
        (0..<max(Int(clinux_cpu_count()), 1)).compactMap { index in
            let cpu = clinux_cpu_at(Int32(clamping: index))
            return cpu < 0 ? nil : Int(cpu)
        }
    }
}
