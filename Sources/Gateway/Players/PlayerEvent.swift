import Base
import Node

/// The kinds of events that a player by WHEP may be told.
///
/// - Source: draft-ietf-wish-whep-00, the extension for server-sent events, which later drafts left out and players
///   kept.
enum PlayerEvent: String, CaseIterable, Sendable {
    /// Somebody publishes to the stream.
    case active
    /// Nobody does.
    case inactive
    /// What there is to choose from.
    case layers
    /// How many watch.
    case viewerCount = "viewercount"

    /// As the `Link` field has them.
    static let all = allCases.map(\.rawValue).joined(separator: ",")

    /// Those of some names that are known here: a player may ask for more than there is.
    /// - Returns: nil where none is.
    static func kinds(named names: some Sequence<String>) -> Set<PlayerEvent>? {
        let kinds = Set(names.compactMap { PlayerEvent(rawValue: $0) })
        return kinds.isEmpty ? nil : kinds
    }

    /// As an event stream has it.
    /// - Source: HTML, section 9.2.6 (interpreting an event stream).
    func text(_ data: JSON) -> String { "event: \(rawValue)\ndata: \(data.text)\n\n" }
}

/// What one player was told, and so what is news to it.
struct PlayerNews: Sendable {
    let kinds: Set<PlayerEvent>
    private var told: PlayerView?

    /// A line that means nothing.
    static let comment = ":\n\n"

    init(_ kinds: Set<PlayerEvent>) {
        self.kinds = kinds
    }

    /// - Returns: the events that tell of `view` whom it knows of what came before; empty for no news.
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

    /// The player has been told of `view`.
    mutating func note(_ view: PlayerView) {
        var view = view
        // Rates that differ a little are not told: they are compared with those that were.
        if let told, !told.media.isNews(to: view.media) { view.media = told.media }
        told = view
    }
}

extension [PlayerView.Media] {
    /// Whether these are to be told somebody who knows of `self`: rates differ a little all the time.
    fileprivate func isNews(to others: [PlayerView.Media]) -> Bool {
        guard count == others.count else { return true }
        return zip(self, others).contains { old, new in
            old.mid != new.mid || old.encodings.count != new.encodings.count
                || zip(old.encodings, new.encodings).contains { $0.isNews(to: $1) }
        }
    }

    /// By the names of m-lines.
    fileprivate var json: JSON {
        .object(Dictionary(map { ($0.mid, $0.json) }) { first, _ in first })
    }
}

extension PlayerView.Encoding {
    fileprivate func isNews(to other: PlayerView.Encoding) -> Bool {
        var same = other
        same.bitrate = bitrate
        return self != same || abs(other.bitrate - bitrate) > bitrate / 4
    }

    /// As one of the active or inactive ones.
    fileprivate var json: JSON {
        .object([
            "id": .string(id), "simulcastIdx": .integer(order), "bitrate": .integer(bitrate),
            "width": width.map { .integer($0) } ?? .null, "height": height.map { .integer($0) } ?? .null,
            "layers": .array([]),
        ])
    }

    /// As what a player may choose.
    ///
    /// Each encoding has one layer of space and one of time: those inside of an encoding the server chooses by itself.
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
    /// A layer that rests is as good as an active one: it comes as soon as somebody chooses it.
    fileprivate var json: JSON {
        let available = encodings.filter(\.isAvailable)
        return .object([
            "active": .array(available.map(\.json)),
            "inactive": .array(encodings.filter { !$0.isAvailable }.map(\.json)),
            "layers": .array(available.map(\.choice)),
        ])
    }
}
