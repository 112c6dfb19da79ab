import CSandbox
import Foundation

/// What the process takes away from itself before it looks at a stranger's byte.
package enum Confinement {
    /// Something that the kernel did not do.
    package struct Refusal: Sendable {
        /// Which of the restrictions.
        package enum Part: String, Sendable {
            case privileges, subordinate, limits, files, calls
            /// The place in the queue of those that the kernel ends when memory runs out.
            case order
        }

        /// Some are needed, others are welcome.
        package let part: Part
        let code: Int32

        package init(_ part: Part, code: Int32) {
            self.part = part
            self.code = code
        }

        var text: String { unsafe "\(part.rawValue): \(String(cString: strerror(code)))" }

        /// Without these, whoever takes the process over reads the server's secrets, or ends it.
        var isGrave: Bool {
            switch part {
            case .privileges, .subordinate, .files, .calls: true
            case .limits, .order: false
            }
        }
    }

    /// For decoders, encoders and thread stacks; addresses, not memory that is in use.
    private static let memory: UInt64 = 6 << 30
    private static let openFiles: UInt64 = 64
    /// The kernel counts all threads of the user, of other processes too.
    private static let threads: UInt64 = 4_096
    /// Libraries, fonts, and what the runtime reads of itself.
    private static let readable = [
        "/usr", "/lib", "/lib64", "/opt", "/etc/fonts", "/etc/ld.so.cache", "/var/cache/fontconfig", "/proc",
        "/sys/devices/system/cpu", "/dev/null", "/dev/urandom",
    ]

    /// - Parameters:
    ///   - parent: with which it ends.
    ///   - niceness: how far it stands behind other processes, 0 to 19; what previews do stands further behind.
    /// - Returns: what the kernel refused.
    package static func confine(parent: Int32, niceness: Int32) -> [Refusal] {
        var refusals: [Refusal] = []
        func note(_ part: Refusal.Part, _ result: Int32) {
            if result < 0 { refusals.append(Refusal(part, code: -result)) }
        }
        note(.order, csandbox_go_first())
        note(.privileges, csandbox_drop_privileges())
        // After the change of user, which would undo it.
        note(.subordinate, csandbox_subordinate(parent, niceness))
        note(.limits, csandbox_limit(Sanitizers.areOn ? 0 : memory, openFiles, threads))
        let paths = unsafe readable.map { unsafe strdup($0) }
        defer { unsafe paths.forEach { unsafe free($0) } }
        let constants = unsafe paths.map { unsafe UnsafePointer($0) }
        unsafe note(.files, csandbox_confine_files(constants, constants.count))
        note(.calls, csandbox_confine_calls())
        return refusals
    }

    /// Keeps other processes of the same user, such as a transcoder that was taken over, out of this one's memory and
    /// environment.
    /// - Returns: what the kernel says against it; nil if it is done.
    package static func hideMemory() -> String? {
        let result = csandbox_hide_memory()
        return unsafe result < 0 ? String(cString: strerror(-result)) : nil
    }
}

/// Whether the program was built with one, and told how to behave.
enum Sanitizers {
    static var areOn: Bool {
        ["ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"].contains {
            ProcessInfo.processInfo.environment[$0] != nil
        }
    }
}
