import Base
import Forwarding
import Peer
import Transcoder

/// Decides which streams' viewers see a pause picture, and keeps the pictures that hosts chose.
///
/// Pure. What is wanted, what jobs report and the time come in. Effects come out and are performed in order. After
/// `open` and `begin` the caller reports the result by `opened` and `began`, which return effects to give back what
/// is no longer needed by then.
struct PauseDesk {
    /// The picture that viewers see.
    struct Picture: Equatable {
        let file: [UInt8]
        /// Whether it is the last preview, because the host has not chosen a picture.
        let isLastFrame: Bool
    }

    /// Identifies a job, so that events of earlier jobs are ignored.
    struct Run: Hashable, Sendable {
        let number: UInt64
    }

    /// What the caller has to do.
    enum Effect: Equatable {
        /// Make a track on a worker, then call `opened`.
        case open(StreamID)
        case close(InjectionID)
        /// Start the job that fills the track, then call `began` if there is one.
        case begin(StreamID, Run, InjectionID, Picture)
        case end(JobID)
        case makeKeyFrame(JobID)
        /// Viewers get something else than before: `track(of:)` has changed.
        case give(StreamID)
        /// Delete the picture from the disk: its stream has ended.
        case forgetFile(StreamID)
        /// The stream needs no pause picture any longer.
        case reportEnd(StreamID)
    }

    /// A stream whose track is open.
    private struct Paused {
        let injection: InjectionID
        var track: PublishedTrack?
        /// Nil while no job runs, such as between two lives of the transcoder.
        var job: (id: JobID, run: Run)?
        /// When to request a job again.
        var retryAt: MonotonicTime
        /// Whether the job's first key frame is on its way to viewers.
        var isPlayable = false
    }

    /// The state of a stream that wants a pause picture.
    private enum Place {
        /// Nothing is shown before `due`: the video may come back, or there is no picture to show yet.
        case wanted(due: MonotonicTime)
        /// The worker is making the track.
        case opening(Picture)
        case open(Paused)
    }

    /// A publisher who comes, or comes back, may send audio first and video a moment later.
    static let delay = Duration.milliseconds(500)
    /// The time until something that failed is tried again.
    static let retryTime = Duration.seconds(1)
    /// Bytes of all hosts' pictures, at most.
    static let memory = 32 << 20

    /// The m-line of a pause picture's track, which is VP8.
    static let plan = SourcePlan(
        mid: "v", kind: .video, formats: [MediaFormat(codec: .vp8, payloadType: 96)])

    private var places: [StreamID: Place] = [:]
    private var files: [StreamID: [UInt8]] = [:]
    private var lastRun: UInt64 = 0

    // MARK: What hosts chose

    /// The picture that a host chose; nil for none.
    func file(of stream: StreamID) -> [UInt8]? { files[stream] }

    /// Whether the pictures of all hosts stay within `memory` with this one.
    func hasRoom(for file: [UInt8]?, of stream: StreamID) -> Bool {
        files.reduce(file?.count ?? 0) { $0 + ($1.key == stream ? 0 : $1.value.count) } <= Self.memory
    }

    mutating func setFile(_ file: [UInt8]?, of stream: StreamID) { files[stream] = file }

    /// Makes the picture that viewers see again; until then they keep the previous one.
    mutating func renew(_ stream: StreamID, at now: MonotonicTime) -> [Effect] {
        guard case .open(var paused) = places[stream], let job = paused.job else { return [] }
        paused.job = nil
        paused.retryAt = now
        places[stream] = .open(paused)
        return [.end(job.id)]
    }

    /// Forgets the picture of a stream that has ended.
    mutating func forgetFile(of stream: StreamID) -> [Effect] {
        files.removeValue(forKey: stream) == nil ? [] : [.forgetFile(stream)]
    }

    // MARK: What is wanted

    /// Takes note of whether a stream's viewers are to see a pause picture.
    /// - Parameter lastFrame: the last preview, for a stream without a picture of the host's choice; nil if there is
    ///   none.
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

    /// Requests a job; at most once in `retryTime`.
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

    /// Gives viewers the video again, and only then closes the track.
    private mutating func end(_ stream: StreamID) -> [Effect] {
        guard case .open(let paused) = places.removeValue(forKey: stream) else { return [] }
        return [.give(stream)] + (paused.job.map { [.end($0.id)] } ?? [])
            + [.close(paused.injection), .reportEnd(stream)]
    }

    // MARK: What comes of it

    /// Takes note of the track that was requested from a worker.
    /// - Parameter injection: nil if the worker accepts no more.
    mutating func opened(_ injection: InjectionID?, of stream: StreamID, at now: MonotonicTime) -> [Effect] {
        guard case .opening(let picture) = places[stream] else {
            // The stream no longer wants a picture: close the track again.
            return injection.map { [.close($0)] } ?? []
        }
        guard let injection else {
            places[stream] = .wanted(due: now + Self.retryTime)
            return []
        }
        return begin(stream, Paused(injection: injection, retryAt: now), picture, at: now)
    }

    /// Takes note of the track, once its worker has made it.
    mutating func made(_ track: PublishedTrack?, of stream: StreamID) -> [Effect] {
        change(stream) { paused in
            paused.track = track
            return [.give(stream)]
        }
    }

    /// Takes note of a job; ends it if it is no longer wanted.
    mutating func began(_ job: JobID, _ run: Run, of stream: StreamID) -> [Effect] {
        guard case .open(var paused) = places[stream], paused.job == nil else { return [.end(job)] }
        paused.job = (job, run)
        places[stream] = .open(paused)
        return []
    }

    /// Processes an event of a job; ignores jobs that are over.
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

    /// A viewer needs a key frame.
    func keyFrameWanted(of stream: StreamID) -> [Effect] {
        guard case .open(let paused) = places[stream], let job = paused.job else { return [] }
        return [.makeKeyFrame(job.id)]
    }

    /// Changes a stream's open track, if there is one.
    private mutating func change(_ stream: StreamID, _ body: (inout Paused) -> [Effect]) -> [Effect] {
        guard case .open(var paused) = places[stream] else { return [] }
        defer { places[stream] = .open(paused) }
        return body(&paused)
    }

    // MARK: Looking

    /// The track that viewers get in place of the programme's video; nil for none.
    func track(of stream: StreamID) -> PublishedTrack? {
        guard case .open(let paused) = places[stream], paused.isPlayable else { return nil }
        return paused.track
    }

    /// Programmes that show a pause picture now.
    var playableCount: Int {
        places.values.count { if case .open(let paused) = $0 { paused.isPlayable } else { false } }
    }

    /// The streams for which `update` is to be called because of the time, in a stable order.
    func due(at now: MonotonicTime) -> [StreamID] {
        places.filter { deadline(of: $0.value).map { $0 <= now } ?? false }.map(\.key)
            .sorted { $0.description < $1.description }
    }

    /// When the first stream is due; nil for never.
    var deadline: MonotonicTime? { places.values.compactMap { deadline(of: $0) }.min() }

    private func deadline(of place: Place) -> MonotonicTime? {
        switch place {
        case .wanted(let due): due
        case .opening: nil
        case .open(let paused): paused.job == nil ? paused.retryAt : nil
        }
    }
}
