import Base
import Node

/// The kinds of events in a WHEP player's event stream.
///
/// - Source: draft-ietf-wish-whep-00, the extension for server-sent events, which later drafts omit and players still
///   use.
enum PlayerEvent: String, CaseIterable, Sendable {
    /// The stream has a publisher.
    case active
    /// The stream has no publisher.
    case inactive
    /// The encodings to choose from.
    case layers
    /// The number of viewers.
    case viewerCount = "viewercount"

    /// All kinds, in the syntax of the `Link` field.
    static let all = allCases.map(\.rawValue).joined(separator: ",")

    /// The kinds among some names; unknown names are ignored, since players request more kinds than exist here.
    /// - Returns: nil if no name is known.
    static func kinds(named names: some Sequence<String>) -> Set<PlayerEvent>? {
        let kinds = Set(names.compactMap { PlayerEvent(rawValue: $0) })
        return kinds.isEmpty ? nil : kinds
    }

    /// An event in the syntax of an event stream.
    /// - Source: HTML, section 9.2.6 (interpreting an event stream).
    func text(_ data: JSON) -> String { "event: \(rawValue)\ndata: \(data.text)\n\n" }
}

/// What one player knows already, which determines the events that it is sent next.
struct PlayerNews: Sendable {
    /// The kinds that the player chose.
    let kinds: Set<PlayerEvent>
    /// The state that the player knows; nil before the first events.
    private var told: PlayerView?

    /// A comment line, which players ignore; keeps the connection alive.
    static let comment = ":\n\n"

    init(_ kinds: Set<PlayerEvent>) {
        self.kinds = kinds
    }

    /// The events that take the player from the state it knows to `view`; empty if there is no news.
    func text(of view: PlayerView) -> String {
        var text = ""
        if told?.isActive != view.isActive {
            let kind = view.isActive ? PlayerEvent.active : .inactive
            if kinds.contains(kind) { text += kind.text(.object([:])) }
        }
        if kinds.contains(.layers), told.map({ $0.media.isNews(to: view.media) }) ?? true {
            text += PlayerEvent.layers.text(view.media.json)
        }
        if kinds.contains(.viewerCount), told?.viewers != view.viewers {
            text += PlayerEvent.viewerCount.text(.object(["viewercount": .integer(view.viewers)]))
        }
        return text
    }

    /// Notes that the events for `view` have been queued.
    mutating func note(_ view: PlayerView) {
        var view = view
        // If small changes of bitrate were not sent, later ones are still compared with the bitrates that were, so
        // that a slow drift is noticed.
        if let told, !told.media.isNews(to: view.media) { view.media = told.media }
        told = view
    }
}

extension [PlayerView.Media] {
    /// Whether `others` is news to a player that knows `self`; small changes of bitrate are not.
    fileprivate func isNews(to others: [PlayerView.Media]) -> Bool {
        guard count == others.count else { return true }
        return zip(self, others).contains { old, new in
            old.mid != new.mid || old.encodings.count != new.encodings.count
                || zip(old.encodings, new.encodings).contains { $0.isNews(to: $1) }
        }
    }

    /// An object by mid, the name of the m-line.
    fileprivate var json: JSON {
        .object(Dictionary(map { ($0.mid, $0.json) }) { first, _ in first })
    }
}

extension PlayerView.Encoding {
    /// Whether anything differs but the bitrate, or the bitrate by more than a quarter.
    fileprivate func isNews(to other: PlayerView.Encoding) -> Bool {
        var same = other
        same.bitrate = bitrate
        return self != same || abs(other.bitrate - bitrate) > bitrate / 4
    }

    /// An element of `active` or `inactive`.
    fileprivate var json: JSON {
        .object([
            "id": .string(id), "simulcastIdx": .integer(order), "bitrate": .integer(bitrate),
            "width": width.map { .integer($0) } ?? .null, "height": height.map { .integer($0) } ?? .null,
            "layers": .array([]),
        ])
    }

    /// An element of `layers`, which a player may choose.
    ///
    /// Each encoding has one spatial and one temporal layer here: layers within an encoding are the server's choice.
    fileprivate var choice: JSON {
        .object([
            "encodingId": .string(id), "simulcastIdx": .integer(order), "bitrate": .integer(bitrate),
            "spatialLayerId": .integer(0), "temporalLayerId": .integer(0),
            "maxSpatialLayerId": .integer(0), "maxTemporalLayerId": .integer(0),
            "width": width.map { .integer($0) } ?? .null, "height": height.map { .integer($0) } ?? .null,
        ])
    }
}

extension PlayerView.Media {
    /// The encodings of an m-line; one at rest counts as active, as it is sent as soon as a player chooses it.
    fileprivate var json: JSON {
        let available = encodings.filter(\.isAvailable)
        return .object([
            "active": .array(available.map(\.json)),
            "inactive": .array(encodings.filter { !$0.isAvailable }.map(\.json)),
            "layers": .array(available.map(\.choice)),
        ])
    }
}
