import Base
import Crypto
import Forwarding
import Peer
import Stage

/// What operators see of one session: the JSON of session lists and of `GET /v1/sessions/{id}`.
///
/// Times of day are derived from monotonic ones, so a jump of the system clock does not reorder events.
struct SessionDossier {
    let record: SessionRecord
    /// Nil while the session is open.
    let ended: SessionHistories.Ended?
    /// The pair from which times of day are derived.
    let now: Moment

    /// The length in bytes at which an offer or an answer is cut.
    private static let descriptionLimit = 16_384

    /// When the client's request was received, from which all `seconds` are counted.
    private var start: MonotonicTime { record.request.received ?? record.created }

    /// The entry in lists, which needs no answer from the worker.
    var outline: JSON {
        .object([
            "id": .string(record.id.label),
            "purpose": .string(record.purpose.rawValue),
            "watching": .bool(record.request.isWatching),
            "stream": record.purpose == .feed ? .null : .string(record.stream.description),
            "participant": .text(record.request.participant?.description),
            "name": .text(record.request.name),
            "clientAddress": .text(record.request.clientAddress?.description),
            "mediaAddress": .text(record.clientMediaAddress?.description),
            "protocol": .text(record.clientMediaAddress.map { $0.transport == .tcp ? "tcp" : "udp" }),
            "relay": .text(record.relayed?.way.rawValue),
            "worker": .integer(record.worker),
            "state": .string(state),
            "since": time(start),
            "endedAt": ended.map { time($0.at) } ?? .null,
            "reason": .text(ended?.reason),
        ])
    }

    /// `connecting` until DTLS is done, then `connected`; `ended` at last.
    private var state: String {
        if ended != nil { return "ended" }
        return record.connection == nil ? "connecting" : "connected"
    }

    /// Everything that is known of the session.
    /// - Parameters:
    ///   - measurements: nil if the worker did not answer; the members that depend on it are missing then.
    ///   - sources: how the tracks that it receives arrive at the server.
    ///   - local: the server's addresses for the session's media.
    func whole(
        _ measurements: SessionMeasurements?, log: SessionLog, sources: [TrackKey: TrackMeasurements],
        local: [TransportAddress]
    ) -> JSON {
        var json = outline
        json["srtp"] = .text(record.connection?.profile.map { "\($0)" })
        json["phases"] = phases(measurements)
        json["offer"] = .string(Self.shown(record.request.offer))
        json["answer"] = .string(Self.shown(record.answer))
        json["localAddresses"] = .array(local.map { .string($0.description) })
        json["events"] = .array(
            log.entries.map { entry in
                var event = entry.event.json
                event["at"] = time(entry.time)
                event["seconds"] = seconds(entry.time)
                return event
            })
        json["eventsDropped"] = .integer(log.dropped)
        // From here on all members come from the worker.
        guard let measurements else { return json }
        json["pairs"] = .array(measurements.pairs.map { $0.json(at: measurements.time) })
        json["publishing"] = .array(measurements.sources.map(\.json))
        json["receiving"] = .array(
            measurements.sendings.map { sending in
                sending.json(from: sending.track.flatMap { sources[$0] }, at: measurements.time)
            })
        json["loss"] = loss(measurements, sources)
        json["quality"] = DeliveryQuality.json(measurements.quality, record.preferences)
        json["received"] = measurements.totals.received.json
        let sent = MediaCounters.Volume(
            packets: measurements.totals.packetsSent, bytes: measurements.totals.bytesSent)
        json["sent"] = sent.json
        json["stepsUp"] = .integer(measurements.totals.stepsUp)
        json["stepsDown"] = .integer(measurements.totals.stepsDown)
        json["dataChannel"] = measurements.channels?.json ?? .null
        return json
    }

    /// When each step of the connection was done, in seconds from the client's request; `null` for what has not
    /// happened.
    private func phases(_ measurements: SessionMeasurements?) -> JSON {
        .object([
            "offer": .integer(0),
            "answer": seconds(record.created),
            "check": seconds(measurements?.phases.checked),
            "dtls": seconds(measurements?.phases.connected),
            "media": seconds(measurements?.phases.firstMedia),
        ])
    }

    /// The loss on each hop of what the session sends or receives; `null` for a hop that it does not have.
    private func loss(
        _ measurements: SessionMeasurements, _ sources: [TrackKey: TrackMeasurements]
    ) -> JSON {
        // For a viewer the first hop is that of the tracks it receives.
        let incoming = measurements.sources.isEmpty ? Array(sources.values) : measurements.sources
        let layers = incoming.flatMap(\.layers)
        let sendings = measurements.sendings
        return .object([
            "publisherToServer": layers.isEmpty
                ? .null
                : .object([
                    "expected": .integer(layers.reduce(0) { $0 + $1.expected }),
                    "lost": .integer(layers.reduce(0) { $0 + $1.lost }),
                    "missing": .integer(layers.reduce(0) { $0 + $1.missing }),
                ]),
            "serverToViewer": sendings.isEmpty
                ? .null
                : .object([
                    "sent": .integer(sendings.reduce(0) { $0 + $1.sent.packets }),
                    "missing": .integer(
                        sendings.reduce(0) { $0 + max(Int($1.reception?.cumulativeLost ?? 0), 0) }),
                    "resent": .integer(sendings.reduce(0) { $0 + $1.resent }),
                    "lately": measurements.lossShare.map { .number($0) } ?? .null,
                ]),
        ])
    }

    /// Seconds since the client's request.
    private func seconds(_ time: MonotonicTime?) -> JSON {
        time.map { .seconds($0 - start) } ?? .null
    }

    /// The time of day of a moment.
    private func time(_ time: MonotonicTime) -> JSON {
        let milliseconds = now.elapsed.nanoseconds(since: time) / 1_000_000
        return .time(WallTime(milliseconds: now.wall.milliseconds - milliseconds))
    }

    /// A description without the ICE password, which would allow taking over the session, and cut to
    /// `descriptionLimit`.
    private static func shown(_ description: String) -> String {
        let text = String(decoding: description.utf8.prefix(descriptionLimit), as: UTF8.self)
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        return lines.map { $0.hasPrefix("a=ice-pwd:") ? "a=ice-pwd:<secret>" : String($0) }
            .joined(separator: "\n")
    }
}

extension JSON {
    /// Seconds with microsecond precision.
    fileprivate static func seconds(_ duration: Duration) -> JSON {
        .number(Double(duration.wholeNanoseconds / 1_000) / 1_000_000)
    }
}

extension MediaCounters.Volume {
    fileprivate var json: JSON { .object(["packets": .integer(packets), "bytes": .integer(bytes)]) }
}

extension SessionMeasurements.Pair {
    /// `quietSeconds` is the time since something was last received from the address.
    fileprivate func json(at now: MonotonicTime) -> JSON {
        .object([
            "address": .string(remote.description),
            "protocol": .string(remote.transport == .tcp ? "tcp" : "udp"),
            "selected": .bool(isSelected), "quietSeconds": lastHeard.map { .seconds(now - $0) } ?? .null,
        ])
    }
}

extension SessionMeasurements.Channels {
    fileprivate var json: JSON {
        .object([
            "open": .bool(isOpen), "control": .bool(hasControl), "bufferedBytes": .integer(buffered),
        ])
    }
}

extension SessionMeasurements.Sending {
    /// - Parameter source: how the track arrives at the server; nil if it is not known.
    fileprivate func json(from source: TrackMeasurements?, at now: MonotonicTime) -> JSON {
        .object([
            "mid": .string(mid), "kind": .string(kind.rawValue), "attached": .bool(track != nil),
            "packets": .integer(sent.packets), "bytes": .integer(sent.bytes),
            "resendsRequested": .integer(resendsRequested), "resent": .integer(resent),
            "report": reception.map { reception in
                .object([
                    // A receiver report counts the fraction lost in 256ths (RFC 3550 §6.4.1).
                    "lostShare": .number(Double(reception.fractionLost) / 256),
                    "missing": .integer(reception.cumulativeLost),
                    "jitterSeconds": .seconds(reception.jitter),
                    "ageSeconds": .seconds(now - reception.at),
                ])
            } ?? .null,
            "from": source?.json ?? .null,
        ])
    }
}

extension TrackMeasurements {
    fileprivate var json: JSON {
        .object([
            "session": .string(session.label), "mid": .string(mid), "kind": .string(kind.rawValue),
            "layers": .array(layers.map(\.json)),
        ])
    }
}

extension TrackMeasurements.Layer {
    fileprivate var json: JSON {
        .object([
            "rid": .text(rid), "active": .bool(isActive), "bitrate": .integer(bitrate),
            "width": width.map { .integer($0) } ?? .null, "height": height.map { .integer($0) } ?? .null,
            "expected": .integer(expected), "received": .integer(received), "lost": .integer(lost),
            "repaired": .integer(repaired), "missing": .integer(missing), "requested": .integer(requested),
            "jitterSeconds": .seconds(jitter), "keyFrames": .integer(keyFrames),
            "keyFrameRequests": .integer(keyFrameRequests),
        ])
    }
}

extension SessionEvent {
    /// Its kind as `event`, and what there is to say of it.
    fileprivate var json: JSON {
        switch self {
        case .answered: Self.json("answered")
        case .checked: Self.json("checked")
        case .connected(let address, let profile):
            Self.json(
                "connected", ["address": .text(address?.description), "srtp": .text(profile.map { "\($0)" })])
        case .mediaStarted: Self.json("media")
        case .becameSource: Self.json("source")
        case .sourceChanged(let mid, let isActive):
            Self.json("track", ["mid": .string(mid), "active": .bool(isActive)])
        case .layersWanted(let mid, let rids):
            Self.json("layers-wanted", ["mid": .string(mid), "rids": .array(rids.map { .string($0) })])
        case .weakUplink: Self.json("weak-uplink")
        case .controlOpened: Self.json("control-open")
        case .began(let stream, let pair):
            Self.json("began", ["stream": .string(stream.description), "slot": .integer(pair)])
        case .quality(let cause, let estimate, let heights):
            Self.json(
                "quality",
                [
                    "cause": .text(cause?.rawValue), "estimate": estimate.map { .integer($0) } ?? .null,
                    "heights": .array(heights.map { $0.map { .integer($0) } ?? .null }),
                ])
        case .rendition(let isWanted): Self.json("rendition", ["wanted": .bool(isWanted)])
        case .preferred(let preferences): Self.json("preferred", ["preferences": preferences.json])
        case .restartedICE: Self.json("ice-restart")
        case .ended(let reason): Self.json("ended", ["reason": .string(reason)])
        }
    }

    /// - Parameter kind: becomes the member `event`.
    private static func json(_ kind: String, _ members: [String: JSON] = [:]) -> JSON {
        .object(members.merging(["event": .string(kind)]) { known, _ in known })
    }
}
