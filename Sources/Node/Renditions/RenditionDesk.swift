import Base
import Forwarding
import Transcoder

/// Of which tracks renditions are made, for viewers whose paths do not take what the publisher sends.
///
/// Pure: what workers, jobs and the clock say comes in, and what has to be done about it comes out, to be done in
/// order. Of more tracks than may be made at once the later ones wait.
struct RenditionDesk {
    /// One life of a job; never used twice.
    struct Run: Hashable, Sendable {
        let number: UInt64
    }

    /// What has to be done.
    enum Effect: Equatable {
        /// Have packets become layers of the track; `opened` follows.
        case open(TrackKey)
        case close(InjectionID)
        /// Begin the job that makes them; `began` follows if there is one.
        case begin(TrackKey, Run, InjectionID)
        case end(JobID)
        /// Hand the track to the job; `fed` follows if that can be done.
        case feed(ComposedProgramme.Want, JobID)
        case stop(ComposedProgramme.Feed)
        /// Have the publisher make a key frame.
        case refresh(ComposedProgramme.Feed)
        /// Have the job make one.
        case makeKeyFrame(JobID, layer: Int)
        case report(Report, SessionID)
    }

    /// What an operator hears of it.
    enum Report: Equatable, Sendable {
        /// There is no room for it.
        case refused
        case begun
        /// The transcoder's process is gone, or took the job no further.
        case lost
        case ended
    }

    /// What follows from what a job says is the same, whichever job it is.
    enum Event: Equatable, Sendable {
        case status(RenditionStatus)
        case keyFrameWanted(InputID)
        case lost
    }

    private struct Job {
        let id: JobID
        var feed: ComposedProgramme.Feed?
        var status = RenditionStatus()
    }

    private enum Phase {
        /// There is no room.
        case waiting
        /// It was lost, and is begun again then.
        case resting(until: MonotonicTime)
        case opening
        /// With its job, as soon as there is one.
        case open(InjectionID, Run, Job?, since: MonotonicTime)
    }

    private struct Place {
        let session: SessionID
        let track: PublishedTrack
        /// Earlier ones first.
        let order: UInt64
        var phase = Phase.waiting
        /// In a row, each after a short life.
        var failures = 0
    }

    /// Until one that was lost is begun again, doubled each time that it did not last.
    static let shortestPause = Duration.milliseconds(500)
    static let doublings = 6
    /// So long a job lives that did not fail.
    static let lifeThatCounts = Duration.seconds(20)

    /// Of tracks at the same time.
    var limit: Int
    /// One for each published track, at most.
    private var places: [TrackKey: Place] = [:]
    private var last: UInt64 = 0
    private var lost: UInt64 = 0

    init(limit: Int) {
        self.limit = limit
    }

    /// How those do that are made now, how many tracks wait, and how often one was lost so far.
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

    /// Viewers need renditions of what a session publishes, or do so no longer.
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
        guard case .waiting = places[key]?.phase else { return effects }
        return effects + [.report(.refused, session)]
    }

    /// Begins what waits, where there is room: the earliest first.
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

    private mutating func end(_ key: TrackKey) -> [Effect] {
        guard let place = places.removeValue(forKey: key) else { return [] }
        guard case .open(let injection, _, let job, _) = place.phase else { return [] }
        return Self.stop(job) + (job.map { [.end($0.id)] } ?? [])
            + [.close(injection), .report(.ended, place.session)]
    }

    private static func stop(_ job: Job?) -> [Effect] { job?.feed.map { [.stop($0)] } ?? [] }

    /// The worker has been asked.
    /// - Parameter injection: nil if it takes no more.
    mutating func opened(_ injection: InjectionID?, of key: TrackKey, at now: MonotonicTime) -> [Effect] {
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

    /// Somebody waits for a key frame.
    func keyFrameWanted(of key: TrackKey, layer: Int) -> [Effect] {
        guard case .open(_, _, let job?, _) = places[key]?.phase else { return [] }
        return [.makeKeyFrame(job.id, layer: layer)]
    }

    // MARK: What jobs tell

    mutating func began(_ job: JobID, _ run: Run, of key: TrackKey) -> [Effect] {
        guard let place = places[key], case .open(let injection, run, nil, let since) = place.phase else {
            return [.end(job)]
        }
        places[key]?.phase = .open(injection, run, Job(id: job), since: since)
        let want = ComposedProgramme.Want(track: place.track, session: place.session, maximumHeight: nil)
        return [.report(.begun, place.session), .feed(want, job)]
    }

    mutating func fed(_ feed: ComposedProgramme.Feed, to id: JobID, of key: TrackKey) -> [Effect] {
        guard case .open(let injection, let run, var job?, let since) = places[key]?.phase, job.id == id,
            job.feed == nil
        else { return [.stop(feed)] }
        job.feed = feed
        places[key]?.phase = .open(injection, run, job, since: since)
        return []
    }

    /// The track cannot be handed to a job: there is no room for it, or the process died of it too often.
    mutating func refused(by id: JobID, of key: TrackKey, at now: MonotonicTime) -> [Effect] {
        guard case .open(_, _, let job?, _) = places[key]?.phase, job.id == id else { return [] }
        return [.end(id)] + lose(key, at: now)
    }

    /// Takes in what a job says; of one that is over, nothing.
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

    /// There is nothing for now: viewers get sound, and what else their paths take.
    private mutating func lose(_ key: TrackKey, at now: MonotonicTime) -> [Effect] {
        guard let place = places[key], case .open(let injection, _, let job, let since) = place.phase else {
            return []
        }
        if now >= since + Self.lifeThatCounts { places[key]?.failures = 0 }
        rest(key, at: now)
        return Self.stop(job) + [.close(injection), .report(.lost, place.session)]
    }

    private mutating func rest(_ key: TrackKey, at now: MonotonicTime) {
        let failures = places[key]?.failures ?? 0
        places[key]?.phase = .resting(until: now + Self.shortestPause * (1 << min(failures, Self.doublings)))
        places[key]?.failures = failures + 1
    }

    // MARK: Time

    /// Begins again what was lost.
    mutating func advance(to now: MonotonicTime) -> [Effect] {
        guard !places.isEmpty else { return [] }
        for (key, place) in places {
            if case .resting(let until) = place.phase, now >= until { places[key]?.phase = .waiting }
        }
        return admitWaiting()
    }
}
