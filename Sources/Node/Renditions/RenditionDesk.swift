import Base
import Forwarding
import Transcoder

/// Decides of which tracks renditions are made, for viewers whose paths do not carry what the publisher sends.
///
/// Pure. What workers and jobs report and the time come in. Effects come out and are performed in order. If more
/// tracks need renditions than the limit allows, the later ones wait.
struct RenditionDesk {
    /// Identifies one life of a job; never used twice.
    struct Run: Hashable, Sendable {
        let number: UInt64
    }

    /// What the caller has to do.
    enum Effect: Equatable {
        /// Inject packets as layers of the track, then call `opened`.
        case open(TrackKey)
        case close(InjectionID)
        /// Start the job that makes them, then call `began` if there is one.
        case begin(TrackKey, Run, InjectionID)
        case end(JobID)
        /// Feed the track to the job, then call `fed` if that is possible.
        case feed(ComposedProgramme.Want, JobID)
        /// Stop feeding the track.
        case stop(ComposedProgramme.Feed)
        /// Request a key frame from the publisher.
        case refresh(ComposedProgramme.Feed)
        /// Request a key frame of a layer from the job.
        case makeKeyFrame(JobID, layer: Int)
        case report(Report, SessionID)
    }

    /// What is reported to operators.
    enum Report: Equatable, Sendable {
        /// There is no room for another track; it waits.
        case refused
        case begun
        /// The transcoder died, or could not continue the job.
        case lost
        case ended
    }

    /// What a job reports, without the job that reports it.
    enum Event: Equatable, Sendable {
        case status(RenditionStatus)
        case keyFrameWanted(InputID)
        case lost
    }

    /// The transcoder's job of a track.
    private struct Job {
        let id: JobID
        /// What feeds the track to the job; nil until it does.
        var feed: ComposedProgramme.Feed?
        var status = RenditionStatus()
    }

    /// How far a track's renditions have come.
    private enum Phase {
        /// There is no room yet.
        case waiting
        /// The job was lost; it is started again at `until`.
        case resting(until: MonotonicTime)
        /// The worker was asked to take packets as layers.
        case opening
        /// The worker takes packets; the job is nil until it has begun.
        case open(InjectionID, Run, Job?, since: MonotonicTime)
    }

    /// A track that needs renditions.
    private struct Place {
        let session: SessionID
        let track: PublishedTrack
        /// Earlier requests have lower numbers and are admitted first.
        let order: UInt64
        var phase = Phase.waiting
        /// Losses in a row, each after a short life.
        var failures = 0
    }

    /// The pause after the first loss.
    ///
    /// It doubles with each loss after a short life.
    static let shortestPause = Duration.milliseconds(500)
    /// Doublings at most, which makes the longest pause 32 s.
    static let doublings = 6
    /// A job that lived this long counts as a success, and the pause starts at the shortest again.
    static let lifeThatCounts = Duration.seconds(20)

    /// Tracks at the same time.
    var limit: Int
    /// The tracks that need renditions, or wait for them.
    private var places: [TrackKey: Place] = [:]
    /// The latest number given to a request or a run.
    private var last: UInt64 = 0
    /// Losses since the start.
    private var lost: UInt64 = 0

    init(limit: Int) {
        self.limit = limit
    }

    /// The status of the jobs that run, the tracks that wait for room, and the losses since the start.
    var counters: (statuses: [RenditionStatus], waiting: Int, lost: UInt64) {
        var (statuses, waiting): ([RenditionStatus], Int) = ([], 0)
        for place in places.values {
            switch place.phase {
            case .waiting: waiting += 1
            case .resting, .opening: break
            case .open(_, _, let job, _): if let job { statuses.append(job.status) }
            }
        }
        return (statuses, waiting, lost)
    }

    // MARK: What workers tell

    /// Takes note that viewers need renditions of a track, or no longer do.
    mutating func want(
        _ track: PublishedTrack, of session: SessionID, isWanted: Bool
    ) -> [Effect] {
        let key = track.key
        guard isWanted else {
            let effects = end(key)
            return effects + admitWaiting()
        }
        guard places[key] == nil else { return [] }
        last &+= 1
        places[key] = Place(session: session, track: track, order: last)
        let effects = admitWaiting()
        // The track itself was not admitted.
        guard case .waiting = places[key]?.phase else { return effects }
        return effects + [.report(.refused, session)]
    }

    /// Admits waiting tracks while there is room, in the order of their requests.
    private mutating func admitWaiting() -> [Effect] {
        var effects: [Effect] = []
        var room = limit
        var waiting: [(order: UInt64, key: TrackKey)] = []
        for (key, place) in places {
            if case .waiting = place.phase { waiting.append((place.order, key)) } else { room -= 1 }
        }
        guard room > 0 else { return [] }
        for (_, key) in waiting.sorted(by: { $0.order < $1.order }).prefix(room) {
            places[key]?.phase = .opening
            effects.append(.open(key))
        }
        return effects
    }

    /// Ends a track's renditions: first what feeds the job, then the job, then the layers.
    private mutating func end(_ key: TrackKey) -> [Effect] {
        guard let place = places.removeValue(forKey: key) else { return [] }
        guard case .open(let injection, _, let job, _) = place.phase else { return [] }
        return Self.stop(job) + (job.map { [.end($0.id)] } ?? [])
            + [.close(injection), .report(.ended, place.session)]
    }

    private static func stop(_ job: Job?) -> [Effect] { job?.feed.map { [.stop($0)] } ?? [] }

    /// Takes note of the worker's answer to `open`.
    /// - Parameter injection: nil if the worker accepts no more.
    mutating func opened(_ injection: InjectionID?, of key: TrackKey, at now: MonotonicTime) -> [Effect] {
        // The track is no longer wanted: give the injection back.
        guard case .opening = places[key]?.phase else { return injection.map { [.close($0)] } ?? [] }
        guard let injection else {
            rest(key, at: now)
            return []
        }
        last &+= 1
        let run = Run(number: last)
        places[key]?.phase = .open(injection, run, nil, since: now)
        return [.begin(key, run, injection)]
    }

    /// A viewer needs a key frame of a layer.
    func keyFrameWanted(of key: TrackKey, layer: Int) -> [Effect] {
        guard case .open(_, _, let job?, _) = places[key]?.phase else { return [] }
        return [.makeKeyFrame(job.id, layer: layer)]
    }

    // MARK: What jobs tell

    /// Takes note of a job, and requests its input; ends it if it is no longer wanted.
    mutating func began(_ job: JobID, _ run: Run, of key: TrackKey) -> [Effect] {
        guard let place = places[key], case .open(let injection, run, nil, let since) = place.phase else {
            return [.end(job)]
        }
        places[key]?.phase = .open(injection, run, Job(id: job), since: since)
        let want = ComposedProgramme.Want(track: place.track, session: place.session, maximumHeight: nil)
        return [.report(.begun, place.session), .feed(want, job)]
    }

    /// Takes note of what feeds a job; stops it if the job is over.
    mutating func fed(_ feed: ComposedProgramme.Feed, to id: JobID, of key: TrackKey) -> [Effect] {
        guard case .open(let injection, let run, var job?, let since) = places[key]?.phase, job.id == id,
            job.feed == nil
        else { return [.stop(feed)] }
        job.feed = feed
        places[key]?.phase = .open(injection, run, job, since: since)
        return []
    }

    /// The track cannot be fed to a job: there is no room for the input, or its media made the decoder die too often.
    mutating func refused(by id: JobID, of key: TrackKey, at now: MonotonicTime) -> [Effect] {
        guard case .open(_, _, let job?, _) = places[key]?.phase, job.id == id else { return [] }
        return [.end(id)] + lose(key, at: now)
    }

    /// Processes an event of a job; ignores jobs that are over.
    mutating func receive(
        _ event: Event, of run: Run, of key: TrackKey, at now: MonotonicTime
    ) -> [Effect] {
        guard let place = places[key], case .open(let injection, run, var job, let since) = place.phase else {
            return []
        }
        switch event {
        case .status(let status):
            job?.status = status
            places[key]?.phase = .open(injection, run, job, since: since)
            return []
        case .keyFrameWanted(let input):
            return job?.feed.flatMap { $0.input == input ? [.refresh($0)] : nil } ?? []
        case .lost:
            lost &+= 1
            return lose(key, at: now)
        }
    }

    /// Handles a loss.
    ///
    /// Until the next job begins, viewers get sound, and what else their paths carry.
    private mutating func lose(_ key: TrackKey, at now: MonotonicTime) -> [Effect] {
        guard let place = places[key], case .open(let injection, _, let job, let since) = place.phase else {
            return []
        }
        if now >= since + Self.lifeThatCounts { places[key]?.failures = 0 }
        rest(key, at: now)
        return Self.stop(job) + [.close(injection), .report(.lost, place.session)]
    }

    /// Schedules the next job of a track.
    private mutating func rest(_ key: TrackKey, at now: MonotonicTime) {
        let failures = places[key]?.failures ?? 0
        places[key]?.phase = .resting(until: now + Self.shortestPause * (1 << min(failures, Self.doublings)))
        places[key]?.failures = failures + 1
    }

    // MARK: Time

    /// Starts the jobs again whose pause is over.
    mutating func advance(to now: MonotonicTime) -> [Effect] {
        guard !places.isEmpty else { return [] }
        for (key, place) in places {
            if case .resting(let until) = place.phase, now >= until { places[key]?.phase = .waiting }
        }
        return admitWaiting()
    }
}
