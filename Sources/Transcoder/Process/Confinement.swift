import CSandbox
import Foundation

/// The restrictions that the process imposes on itself before it processes untrusted data.
package enum Confinement {
    /// A restriction that the kernel refused.
    package struct Refusal: Sendable {
        /// The kinds of restrictions.
        package enum Part: String, Sendable {
            /// Dropping root; ending with the parent and running at lower priority; resource limits; file access;
            /// system calls.
            case privileges, subordinate, limits, files, calls
            /// Being the first to be killed when memory runs out.
            case order
        }

        /// The refused restriction; some are required, others are not.
        package let part: Part
        /// The kernel's `errno`.
        let code: Int32

        package init(_ part: Part, code: Int32) {
            self.part = part
            self.code = code
        }

        /// For the log.
        var text: String { unsafe "\(part.rawValue): \(String(cString: strerror(code)))" }

        /// Whether an attacker who controls the process could then read the server's secrets or kill the server.
        var isGrave: Bool {
            switch part {
            case .privileges, .subordinate, .files, .calls: true
            case .limits, .order: false
            }
        }
    }

    /// Limit of the address space in bytes, for decoders, encoders and thread stacks; addresses, not used memory.
    private static let memory: UInt64 = 6 << 30
    /// Most open descriptors.
    private static let openFiles: UInt64 = 64
    /// Most threads; the kernel counts all threads of the user, including those of other processes.
    private static let threads: UInt64 = 4_096
    /// Readable paths: libraries, fonts, and what the Swift runtime reads about its environment.
    private static let readable = [
        "/usr", "/lib", "/lib64", "/opt", "/etc/fonts", "/etc/ld.so.cache", "/var/cache/fontconfig", "/proc",
        "/sys/devices/system/cpu", "/dev/null", "/dev/urandom",
    ]

    /// Applies all restrictions.
    /// - Parameters:
    ///   - parent: the process with which this one ends.
    ///   - niceness: 0 to 19; previews run at still lower priority.
    /// - Returns: the restrictions that the kernel refused.
    package static func confine(parent: Int32, niceness: Int32) -> [Refusal] {
        var refusals: [Refusal] = []
        func note(_ part: Refusal.Part, _ result: Int32) {
            if result < 0 { refusals.append(Refusal(part, code: -result)) }
        }
        note(.order, csandbox_go_first())
        note(.privileges, csandbox_drop_privileges())
        // Changing the user resets the parent-death signal, so this follows it.
        note(.subordinate, csandbox_subordinate(parent, niceness))
        // Sanitizers reserve terabytes of address space.
        note(.limits, csandbox_limit(Sanitizers.areOn ? 0 : memory, openFiles, threads))
        let paths = unsafe readable.map { unsafe strdup($0) }
        defer { unsafe paths.forEach { unsafe free($0) } }
        let constants = unsafe paths.map { unsafe UnsafePointer($0) }
        unsafe note(.files, csandbox_confine_files(constants, constants.count))
        note(.calls, csandbox_confine_calls())
        return refusals
    }

    /// Denies other processes of the same user, such as a compromised transcoder, access to this one's memory and
    /// environment.
    /// - Returns: the kernel's error; nil on success.
    package static func hideMemory() -> String? {
        let result = csandbox_hide_memory()
        return unsafe result < 0 ? String(cString: strerror(-result)) : nil
    }
}

/// Detects a build with sanitizers, by the variables that configure them.
enum Sanitizers {
    static var areOn: Bool {
        ["ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"].contains {
            ProcessInfo.processInfo.environment[$0] != nil
        }
    }
}
