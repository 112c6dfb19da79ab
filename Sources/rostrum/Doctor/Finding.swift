import Base

/// The result of one check.
struct Finding: Equatable, Sendable {
    /// How severe a finding is.
    enum Verdict: String, Sendable {
        case ok
        /// The server runs, but something will not work for some clients.
        case warn
        /// The server does not start, or no client can use it.
        case fail
    }

    /// What was checked, such as `certificate`.
    let subject: String
    let verdict: Verdict
    /// What was found.
    var text: String
    /// What to do about it; nil if there is nothing to do.
    let remedy: String?

    static func ok(_ subject: String, _ text: String) -> Finding {
        Finding(subject: subject, verdict: .ok, text: text, remedy: nil)
    }

    static func warn(_ subject: String, _ text: String, remedy: String) -> Finding {
        Finding(subject: subject, verdict: .warn, text: text, remedy: remedy)
    }

    static func fail(_ subject: String, _ text: String, remedy: String) -> Finding {
        Finding(subject: subject, verdict: .fail, text: text, remedy: remedy)
    }

    /// The finding as one line: verdict and subject in columns, then the text and the remedy.
    var line: String {
        func padded(_ text: String, to width: Int) -> String {
            text + String(repeating: " ", count: max(1, width - text.count))
        }
        let advice = remedy.map { ": \($0)" } ?? ""
        return padded(verdict.rawValue, to: 6) + padded(subject, to: 16) + text + advice
    }

    var json: JSON {
        .object([
            "subject": .string(subject), "verdict": .string(verdict.rawValue), "text": .string(text),
            "remedy": .text(remedy),
        ])
    }
}

extension [Finding] {
    /// Whether a server would not start or not work; decides the exit status.
    var hasFailed: Bool { contains { $0.verdict == .fail } }

    /// The report of `rostrum doctor --json`.
    var json: JSON { .object(["ok": .bool(!hasFailed), "checks": .array(map(\.json))]) }
}
