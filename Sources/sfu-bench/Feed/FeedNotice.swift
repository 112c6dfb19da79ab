import Foundation

/// A message of the server on the control channel of a feed session.
enum FeedNotice: Equatable {
    /// What one m-line has.
    struct Line: Equatable, Decodable {
        var mid: String
        /// Nil while it has no stream.
        var stream: String?
        /// `full` or `preview`.
        var quality: String?
    }

    /// The m-lines of the session, after a change.
    case slots([Line])
    /// The server has put another stream into focus.
    case moved(to: String)
    /// The server refused a message of the viewer.
    case refused
    /// Another session of the same viewer has replaced this one.
    case replaced
    /// A message that does not matter here.
    case other

    /// The members of all messages that are read.
    private struct Form: Decodable {
        var type: String
        var slots: [Line]?
        var to: String?
    }

    /// - Returns: nil for bytes that are not a JSON object with a type.
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
