import Base
import Peer
import Wire

/// A publisher inside the server: tracks on a worker that are fed with unencrypted packets.
///
/// Media from the transcoder enters here. From here on it is like any other track, with a history for retransmissions
/// and a group of pictures that viewers begin with. There is no peer connection behind it, so requests for key frames
/// go to the producer of the media.
final class Injection: TrackOwner {
    let id: InjectionID
    private(set) var tracks: [Track] = []
    /// Key-frame demands that have not been taken yet.
    private(set) var demands: [Demand] = []
    /// When each layer's key frame was last demanded.
    private var lastDemands: [Demand: MonotonicTime] = [:]
    private let notices: InjectionNotices
    /// Whether it makes layers of another publisher's track instead of tracks.
    let makesRenditions: Bool

    /// A key frame that the producer should make: of which source and layer, as the producer numbers them.
    struct Demand: Hashable {
        let source: Int
        let layer: Int
    }

    /// Minimum time between two demands for a key frame of the same layer.
    private static let demandInterval = Duration.milliseconds(250)

    /// Creates an injection that makes renditions of a track.
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

    /// The tracks as control and other workers need to know them.
    var published: [PublishedTrack] {
        tracks.map { PublishedTrack(key: $0.key, plan: $0.plan, extensions: ExtensionIDs()) }
    }

    /// Stores packets and forwards them to slots, taps and other workers.
    /// - Returns: how many of them were refused, because they could not be read or belong to no layer.
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

    /// The producer's number for one of a track's layers.
    private func place(of layer: Int, of track: Track) -> Int? {
        if makesRenditions { return RenditionLayer(index: layer)?.rawValue }
        guard track.layers.indices.contains(layer) else { return nil }
        let name = track.layers[layer].rid
        return track.plan.rids.firstIndex { $0 == name } ?? 0
    }

    /// Does nothing: media made here already has the requested size.
    func renditionNeeded(of track: TrackID, at now: MonotonicTime) {}

    /// Does nothing: the producer stops as a whole when nothing of it is used.
    func layersTaken(_ layers: LayerSet, of track: TrackID, at now: MonotonicTime) {}

    func restsChanged(of track: Track, at now: MonotonicTime) {}

    func takeDemands() -> [Demand] {
        defer { demands.removeAll() }
        return demands
    }
}

/// The injections of a worker whose producers have to be notified.
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
    /// Creates the tracks of a publisher inside the server, and reports them to control.
    func open(_ opening: InjectionOpening) {
        guard injections[opening.id] == nil else { return }
        let sources: [SourcePlan]
        switch opening.target {
        case .tracks(let plans): sources = plans
        case .renditions(let id):
            // Control is notified separately of a track that has ended.
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

    /// Removes an injection; slots that still carry its tracks receive nothing more until control gives them others.
    func close(_ id: InjectionID, at now: MonotonicTime) {
        guard let injection = injections.removeValue(forKey: id) else { return }
        for track in injection.tracks {
            guard !injection.makesRenditions else {
                track.endRenditions()
                links?.tellAll(.endRenditions(track.key.track))
                continue
            }
            published[track.key.track] = nil
            closeTaps(of: track)
            track.flush(at: now)
        }
    }

    /// Reports to control the tracks of which viewers need a rendition.
    func tellRenditionNotices() {
        for notice in renditions.takeNotices() {
            tell(.renditionWanted(notice.session, notice.track, isWanted: notice.isWanted))
        }
    }

    /// Reports to control the injections that have to make a key frame.
    func tellInjectionNotices() {
        for injection in injectionNotices.takeAll() {
            for demand in injection.takeDemands() {
                tell(.keyFrameWanted(injection.id, source: demand.source, layer: demand.layer))
            }
        }
    }
}
