import CWebSockets
import Synchronization

/// Collects what libwebsockets says while a context is made; afterwards it is silent.
///
/// Its log is one for the process and takes no context, so this is too.
enum LibraryComplaints {
    private static let lines = Mutex<[String]>([])
    private static let turn = Mutex<Void>(())

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

    private static func keep(_ line: String) {
        lines.withLock { lines in
            guard lines.count < 16 else { return }
            var text = line[...]
            while let last = text.last, last.isNewline || last == " " { text.removeLast() }
            if !text.isEmpty { lines.append(String(text)) }
        }
    }
}
