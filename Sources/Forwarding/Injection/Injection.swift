import Base
import Peer
import Wire

/// A publisher inside the server: tracks on a worker that are fed with packets in the clear.
///
/// What the transcoder makes comes in this way: from here on it is like any other track, with a history that
/// retransmissions come from and a group of pictures that viewers begin with. There is no peer connection behind it;
/// whoever makes the media is asked for key frames instead.
final class Injection: TrackOwner {
    let id: InjectionID
    private(set) var tracks: [Track] = []
    /// Demands of key frames since the last look.
    private(set) var demands: [Demand] = []
    private var lastDemands: [Demand: MonotonicTime] = [:]
    private let notices: InjectionNotices
    /// Whether what it makes are layers of somebody else's track.
    let makesRenditions: Bool

    struct Demand: Hashable {
        let source: Int
        let layer: Int
    }

    /// Whoever makes the media is asked at most this often for one layer's key frame.
    private static let demandInterval = Duration.milliseconds(250)

    /// One that makes renditions of a track.
    init(_ id: InjectionID, renditionsOf track: Track, notices: InjectionNotices) {
        self.id = id
        self.notices = notices
        makesRenditions = true
        tracks = [track]
    }

    init(
        _ id: InjectionID, _ sources: [SourcePlan], worker: Int, firstTrack: UInt64, fanOut: FanOut,
        notices: InjectionNotices
    ) {
        self.id = id
        self.notices = notices
        makesRenditions = false
        for (index, plan) in sources.enumerated() {
            let key = TrackKey(worker: worker, track: TrackID(number: firstTrack &+ UInt64(index)))
            let reader = PacketReader(formats: plan.formats, ids: ExtensionIDs())
            tracks.append(Track(key: key, plan: plan, reader: reader, owner: self, fanOut: fanOut))
        }
    }

    var published: [PublishedTrack] {
        tracks.map { PublishedTrack(key: $0.key, plan: $0.plan, extensions: ExtensionIDs()) }
    }

    /// Takes packets in and hands them to whoever watches.
    /// - Returns: how many of them were none.
    func receive(
        _ packets: InjectedPackets, over links: WorkerLinks?, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) -> Int {
        var refused = 0
        for item in packets.items {
            guard let track = tracks.indices.contains(item.source) ? tracks[item.source] : nil,
                let layer = layer(item.layer, of: track, at: now),
                let packet = try? layer.receiveInjected(
                    packets.bytes.span.extracting(item.range), captured: item.captured, at: now)
            else {
                refused += 1
                continue
            }
            track.relay(packet, packets.bytes.span.extracting(item.range), of: layer, over: links)
            layer.forward(packet, at: now, into: &sink)
            if makesRenditions { continue }
            track.tap(packet, packets.bytes.span.extracting(item.range), of: layer, at: now)
            track.retargetIfDue(at: now)
        }
        return refused
    }

    private func layer(_ index: Int, of track: Track, at now: MonotonicTime) -> TrackLayer? {
        if makesRenditions {
            return RenditionLayer(rawValue: index).flatMap { track.layer($0, by: self) }
        }
        let rids = track.plan.rids
        guard rids.isEmpty || rids.indices.contains(index) else { return nil }
        return track.layer(rid: rids.isEmpty ? nil : rids[index], at: now)
    }

    func keyFrameDemanded(
        of layer: Int, of track: TrackID, for reason: KeyFrameRequester.Reason, at now: MonotonicTime
    ) {
        guard let source = tracks.firstIndex(where: { $0.key.track == track }),
            let place = place(of: layer, of: tracks[source])
        else { return }
        let demand = Demand(source: source, layer: place)
        if let last = lastDemands[demand], now < last + Self.demandInterval { return }
        lastDemands[demand] = now
        demands.append(demand)
        notices.add(self)
    }

    /// What whoever makes a track calls one of its layers.
    private func place(of layer: Int, of track: Track) -> Int? {
        if makesRenditions { return RenditionLayer(index: layer)?.rawValue }
        guard track.layers.indices.contains(layer) else { return nil }
        let name = track.layers[layer].rid
        return track.plan.rids.firstIndex { $0 == name } ?? 0
    }

    /// What is made here is as large as was asked for.
    func renditionNeeded(of track: TrackID, at now: MonotonicTime) {}

    /// What nobody takes is not made: compositions rest as a whole.
    func layersTaken(_ layers: LayerSet, of track: TrackID, at now: MonotonicTime) {}

    func restsChanged(of track: Track, at now: MonotonicTime) {}

    func takeDemands() -> [Demand] {
        defer { demands.removeAll() }
        return demands
    }
}

/// Injections of a worker that need something of whoever feeds them.
final class InjectionNotices {
    private var waiting: [Injection] = []

    func add(_ injection: Injection) {
        guard !waiting.contains(where: { $0 === injection }) else { return }
        waiting.append(injection)
    }

    func takeAll() -> [Injection] {
        guard !waiting.isEmpty else { return [] }
        defer { waiting.removeAll(keepingCapacity: true) }
        return waiting
    }
}

extension Worker {
    /// Makes the tracks of a publisher inside the server, and tells their names.
    func open(_ opening: InjectionOpening) {
        guard injections[opening.id] == nil else { return }
        let sources: [SourcePlan]
        switch opening.target {
        case .tracks(let plans): sources = plans
        case .renditions(let id):
            // Control hears by itself of a track that has ended.
            guard let track = published[id] else { return }
            let injection = Injection(opening.id, renditionsOf: track, notices: injectionNotices)
            if track.beginRenditions(by: injection) { injections[opening.id] = injection }
            return
        }
        let injection = Injection(
            opening.id, sources, worker: links?.index ?? 0, firstTrack: nextTrack, fanOut: fanOut,
            notices: injectionNotices)
        nextTrack &+= UInt64(injection.tracks.count)
        for track in injection.tracks { published[track.key.track] = track }
        injections[opening.id] = injection
        tell(.injected(opening.id, injection.published))
    }

    func inject(
        _ packets: InjectedPackets, _ id: InjectionID, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard let injection = injections[id] else { return }
        let refused = injection.receive(packets, over: links, at: now, into: &sink)
        counters.packetsInjected &+= UInt64(packets.items.count - refused)
        counters.media.drops.undecodable &+= UInt64(refused)
    }

    /// Forgets an injection; slots that still carry its tracks get nothing more until control gives them others.
    func close(_ id: InjectionID, at now: MonotonicTime) {
        guard let injection = injections.removeValue(forKey: id) else { return }
        for track in injection.tracks {
            guard !injection.makesRenditions else {
                track.endRenditions()
                links?.tellAll(.endRenditions(track.key.track))
                continue
            }
            published[track.key.track] = nil
            track.flush(at: now)
        }
    }

    /// Tells control of which tracks viewers need a rendition.
    func tellRenditionNotices() {
        for notice in renditions.takeNotices() {
            tell(.renditionWanted(notice.session, notice.track, isWanted: notice.isWanted))
        }
    }

    /// Tells control which injections have to make a key frame.
    func tellInjectionNotices() {
        for injection in injectionNotices.takeAll() {
            for demand in injection.takeDemands() {
                tell(.keyFrameWanted(injection.id, source: demand.source, layer: demand.layer))
            }
        }
    }
}
