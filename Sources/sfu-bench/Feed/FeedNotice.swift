import Foundation

/// What the server says on the control channel of a feed session.
enum FeedNotice: Equatable {
    struct Line: Equatable, Decodable {
        var mid: String
        var stream: String?
        /// `full` or `preview`.
        var quality: String?
    }

    case slots([Line])
    case moved(to: String)
    case refused
    case replaced
    /// Nothing that matters here.
    case other

    private struct Form: Decodable {
        var type: String
        var slots: [Line]?
        var to: String?
    }

    /// - Returns: nil for what is no JSON object with a type.
    init?(parsing bytes: [UInt8]) {
        guard let form = try? JSONDecoder().decode(Form.self, from: Data(bytes)) else { return nil }
        switch (form.type, form.slots, form.to) {
        case ("slots", let slots?, _): self = .slots(slots)
        case ("moved", _, let to?): self = .moved(to: to)
        case ("refused", _, _): self = .refused
        case ("replaced", _, _): self = .replaced
        default: self = .other
        }
    }
}
