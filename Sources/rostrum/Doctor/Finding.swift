import Base

/// What the doctor found of one thing.
struct Finding: Equatable, Sendable {
    enum Verdict: String, Sendable {
        case ok
        /// It runs, but somebody will miss something.
        case warn
        /// It does not run, or nobody can use it.
        case fail
    }

    /// Such as `certificate`.
    let subject: String
    let verdict: Verdict
    var text: String
    /// What to do; nil where there is nothing to do.
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

    /// One line.
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
    var hasFailed: Bool { contains { $0.verdict == .fail } }

    var json: JSON { .object(["ok": .bool(!hasFailed), "checks": .array(map(\.json))]) }
}
