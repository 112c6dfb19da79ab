import CWebSockets
import Synchronization

/// Collects libwebsockets' log messages while a context is created; at other times its log is off.
///
/// The library has one log callback per process, without a context argument, so this state is global as well.
enum LibraryComplaints {
    private static let lines = Mutex<[String]>([])
    /// Serializes creations, so that messages are attributed to the right one.
    private static let turn = Mutex<Void>(())

    /// Runs `body` with logging on.
    /// - Returns: the result, and the lines logged meanwhile, at most 16.
    static func collect<Result>(_ body: () -> Result) -> (Result, [String]) {
        turn.withLock { _ in
            lines.withLock { $0.removeAll() }
            unsafe cws_set_log { _, line in
                guard let line = unsafe line else { return }
                unsafe LibraryComplaints.keep(String(cString: line))
            }
            let result = body()
            cws_set_log(nil)
            return (result, lines.withLock { $0 })
        }
    }

    /// Stores a line without its line break; excess lines are dropped, as the first ones name the cause.
    private static func keep(_ line: String) {
        lines.withLock { lines in
            guard lines.count < 16 else { return }
            var text = line[...]
            while let last = text.last, last.isNewline || last == " " { text.removeLast() }
            if !text.isEmpty { lines.append(String(text)) }
        }
    }
}
