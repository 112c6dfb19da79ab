import Base
import Forwarding
import Peer
import Transcoder
import Wire

/// Pause pictures: which streams' viewers see one, because whoever provides the programme has no camera on, and which
/// pictures hosts chose for that.
///
/// Pure: what is wanted, what jobs say and the time come in, and what has to be done comes out, to be carried out in
/// order. `opened` and `began` follow the effects that ask for it, and give back what nobody needs any more by then.
struct PauseDesk {
    /// A picture that viewers are to see.
    struct Picture: Equatable {
        let file: [UInt8]
        /// Whether it is the last preview, and not what the host chose.
        let isLastFrame: Bool
    }

    /// Names one job, so that what an earlier one says is known for what it is.
    struct Run: Hashable, Sendable {
        let number: UInt64
    }

    /// What has to be done.
    enum Effect: Equatable {
        /// Make a track on a worker; `opened` follows.
        case open(StreamID)
        case close(InjectionID)
        /// Begin the job that fills the track; `began` follows if there is one.
        case begin(StreamID, Run, InjectionID, Picture)
        case end(JobID)
        case makeKeyFrame(JobID)
        /// Viewers get something else than before.
        case give(StreamID)
        /// What the host of a stream that has ended chose need not be kept.
        case forgetFile(StreamID)
        /// Viewers need none any longer.
        case reportEnd(StreamID)
    }

    private struct Paused {
        let injection: InjectionID
        var track: PublishedTrack?
        /// Nil between two lives of the transcoder.
        var job: (id: JobID, run: Run)?
        /// When a job is asked for once more.
        var retryAt: MonotonicTime
        /// Whether its first key frame is on its way.
        var isPlayable = false
    }

    private enum Place {
        /// Until `due` somebody may be back; after that there is no picture yet that could be shown.
        case wanted(due: MonotonicTime)
        /// The track is being made.
        case opening(Picture)
        case open(Paused)
    }

    /// Whoever comes, or comes back, may send sound first and a picture a moment later.
    static let delay = Duration.milliseconds(500)
    /// Until what could not be done is tried again.
    static let retryTime = Duration.seconds(1)
    /// Bytes of pictures that hosts chose, at most, over all streams.
    static let memory = 32 << 20

    static let plan = SourcePlan(
        mid: "v", kind: .video, formats: [MediaFormat(codec: .vp8, payloadType: 96)])

    private var places: [StreamID: Place] = [:]
    private var files: [StreamID: [UInt8]] = [:]
    private var lastRun: UInt64 = 0

    // MARK: What hosts chose

    /// What a host chose; nil for nothing.
    func file(of stream: StreamID) -> [UInt8]? { files[stream] }

    /// Whether what all hosts chose would not be too much with it.
    func hasRoom(for file: [UInt8]?, of stream: StreamID) -> Bool {
        files.reduce(file?.count ?? 0) { $0 + ($1.key == stream ? 0 : $1.value.count) } <= Self.memory
    }

    mutating func setFile(_ file: [UInt8]?, of stream: StreamID) { files[stream] = file }

    /// Has a picture that viewers see made anew; they keep the one from before until then.
    mutating func renew(_ stream: StreamID, at now: MonotonicTime) -> [Effect] {
        guard case .open(var paused) = places[stream], let job = paused.job else { return [] }
        paused.job = nil
        paused.retryAt = now
        places[stream] = .open(paused)
        return [.end(job.id)]
    }

    /// Forgets what the host of a stream chose, which has ended.
    mutating func forgetFile(of stream: StreamID) -> [Effect] {
        files.removeValue(forKey: stream) == nil ? [] : [.forgetFile(stream)]
    }

    // MARK: What is wanted

    /// Takes in whether a stream's viewers are to see a picture.
    /// - Parameter lastFrame: the last preview, for where the host chose nothing; nil if there is none.
    mutating func update(
        _ stream: StreamID, isWanted: Bool, lastFrame: [UInt8]?, at now: MonotonicTime
    ) -> [Effect] {
        guard isWanted else { return end(stream) }
        let picture =
            files[stream].map { Picture(file: $0, isLastFrame: false) }
            ?? lastFrame.map { Picture(file: $0, isLastFrame: true) }
        switch places[stream] {
        case nil:
            places[stream] = .wanted(due: now + Self.delay)
            return []
        case .wanted(let due):
            guard now >= due else { return [] }
            guard let picture else {
                places[stream] = .wanted(due: now + Self.retryTime)
                return []
            }
            places[stream] = .opening(picture)
            return [.open(stream)]
        case .opening: return []
        case .open(let paused):
            guard paused.job == nil, now >= paused.retryAt else { return [] }
            return begin(stream, paused, picture, at: now)
        }
    }

    private mutating func begin(
        _ stream: StreamID, _ paused: Paused, _ picture: Picture?, at now: MonotonicTime
    ) -> [Effect] {
        var paused = paused
        paused.retryAt = now + Self.retryTime
        places[stream] = .open(paused)
        guard let picture else { return [] }
        lastRun &+= 1
        return [.begin(stream, Run(number: lastRun), paused.injection, picture)]
    }

    private mutating func end(_ stream: StreamID) -> [Effect] {
        guard case .open(let paused) = places.removeValue(forKey: stream) else { return [] }
        return [.give(stream)] + (paused.job.map { [.end($0.id)] } ?? [])
            + [.close(paused.injection), .reportEnd(stream)]
    }

    // MARK: What comes of it

    /// The worker has been asked for a track.
    /// - Parameter injection: nil if it takes no more.
    mutating func opened(_ injection: InjectionID?, of stream: StreamID, at now: MonotonicTime) -> [Effect] {
        guard case .opening(let picture) = places[stream] else {
            return injection.map { [.close($0)] } ?? []
        }
        guard let injection else {
            places[stream] = .wanted(due: now + Self.retryTime)
            return []
        }
        return begin(stream, Paused(injection: injection, retryAt: now), picture, at: now)
    }

    /// The track is there.
    mutating func made(_ track: PublishedTrack?, of stream: StreamID) -> [Effect] {
        change(stream) { paused in
            paused.track = track
            return [.give(stream)]
        }
    }

    mutating func began(_ job: JobID, _ run: Run, of stream: StreamID) -> [Effect] {
        guard case .open(var paused) = places[stream], paused.job == nil else { return [.end(job)] }
        paused.job = (job, run)
        places[stream] = .open(paused)
        return []
    }

    /// Takes in what a job says; of one that is over, nothing.
    mutating func receive(_ event: PauseEvent, of stream: StreamID, at now: MonotonicTime) -> [Effect] {
        change(stream) { paused in
            guard paused.job?.run == event.run else { return [] }
            switch event {
            case .playable: paused.isPlayable = true
            case .lost:
                paused.job = nil
                paused.isPlayable = false
                paused.retryAt = now + Self.retryTime
            }
            return [.give(stream)]
        }
    }

    /// A viewer waits for a key frame.
    func keyFrameWanted(of stream: StreamID) -> [Effect] {
        guard case .open(let paused) = places[stream], let job = paused.job else { return [] }
        return [.makeKeyFrame(job.id)]
    }

    private mutating func change(_ stream: StreamID, _ body: (inout Paused) -> [Effect]) -> [Effect] {
        guard case .open(var paused) = places[stream] else { return [] }
        defer { places[stream] = .open(paused) }
        return body(&paused)
    }

    // MARK: Looking

    /// What viewers get in the place of the programme's picture; nil for nothing.
    func track(of stream: StreamID) -> PublishedTrack? {
        guard case .open(let paused) = places[stream], paused.isPlayable else { return nil }
        return paused.track
    }

    /// Programmes whose picture is a pause picture now.
    var playableCount: Int {
        places.values.count { if case .open(let paused) = $0 { paused.isPlayable } else { false } }
    }

    /// Streams to `update` again, though nothing was heard of them.
    func due(at now: MonotonicTime) -> [StreamID] {
        places.filter { deadline(of: $0.value).map { $0 <= now } ?? false }.map(\.key)
            .sorted { $0.description < $1.description }
    }

    /// When the first is due; nil for never.
    var deadline: MonotonicTime? { places.values.compactMap { deadline(of: $0) }.min() }

    private func deadline(of place: Place) -> MonotonicTime? {
        switch place {
        case .wanted(let due): due
        case .opening: nil
        case .open(let paused): paused.job == nil ? paused.retryAt : nil
        }
    }
}
