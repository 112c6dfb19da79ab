import Base
import Forwarding
import Transcoder

/// Decides which streams are composed, from which speakers, and what their viewers receive.
///
/// Pure: reports from stages, jobs and the clock come in, and effects go out, to be performed in order. Workers and
/// the transcoder assign the numbers of what they make: `opened`, `began` and `fed` follow the effects that ask for
/// it, and return as effects whatever is no longer needed by then.
struct CompositionDesk {
    /// What a stream's composition depends on, besides the speakers on its stage.
    struct Situation: Equatable {
        /// Whether anyone has a session on its stage.
        var hasStage = true
        /// Whether the stream is live; a composition backstage would have no viewers.
        var isLive = true
        /// Whether the composition would be seen: by a viewer, connected or not yet, or by a recording.
        ///
        /// New viewers first see the active speaker, which the cache provides immediately, and the composition once
        /// it is playable.
        var isWatched = true
        var settings = CompositionSettings()
    }

    /// What has to be done, in order.
    enum Effect: Equatable {
        /// Make the composition's tracks on a worker; `opened` follows.
        case open(StreamID)
        case close(InjectionID)
        /// Begin the job that fills the tracks; `began` follows if the transcoder accepts it.
        case begin(StreamID, InjectionID, CompositionSettings)
        case end(JobID)
        /// Feed a track to the job; `fed` follows if that is possible.
        case feed(StreamID, JobID, ComposedProgramme.Want)
        /// Change the largest layer that the job receives of a track.
        case limit(ComposedProgramme.Feed)
        /// Stop feeding a track to the job.
        case stop(ComposedProgramme.Feed)
        /// Request a key frame from the publisher.
        case refresh(ComposedProgramme.Feed)
        /// Request a key frame from the job.
        case makeKeyFrame(JobID)
        /// Send the job the stream's `scene`, as it is when this effect is performed.
        case show(StreamID)
        /// Set what viewers receive of the composition; if empty, they see the active speaker instead.
        case give(StreamID, [PublishedTrack])
        case report(StreamID, Report)
    }

    /// What is reported to an operator.
    enum Report: Equatable {
        /// There is no room for another composition.
        case refused
        case begun(speakers: Int)
        /// The quality was lowered or raised, because of the machine's load.
        case level(CompositionStatus)
        /// The transcoder's process has died.
        case lost
        /// The composition has no viewers any more.
        case rests
        case ended
    }

    /// The state of a stream that has speakers to compose.
    private enum Place {
        /// It has no viewers.
        case resting([ComposedSpeaker])
        /// There is no room.
        case waiting([ComposedSpeaker])
        /// Its tracks are being made; `opened` has not come yet.
        case opening([ComposedSpeaker])
        case open(ComposedProgramme)
    }

    /// How long a composition without speakers is kept: people leave and come back.
    static let idleTime = Duration.seconds(5)
    /// How long a composition without viewers is kept: a viewer who swipes away and back returns sooner.
    static let unwatchedTime = Duration.seconds(10)

    /// The number of compositions at the same time.
    var limit: Int
    private var places: [StreamID: Place] = [:]
    /// Compositions that ended with the transcoder's process, since the start.
    private var lost: UInt64 = 0

    init(limit: Int) {
        self.limit = limit
    }

    /// The status of each running composition, how many wait for room, how many rest without viewers, and how many
    /// were lost with the process since the start.
    var counters: (statuses: [CompositionStatus], waiting: Int, resting: Int, lost: UInt64) {
        var (statuses, waiting, resting): ([CompositionStatus], Int, Int) = ([], 0, 0)
        for place in places.values {
            switch place {
            case .resting: resting += 1
            case .waiting: waiting += 1
            case .opening: break
            case .open(let programme):
                if let job = programme.job { statuses.append(job.status) }
            }
        }
        return (statuses, waiting, resting, lost)
    }

    /// The streams that have speakers to compose, whether they are composed now or not.
    var streams: [StreamID] { Array(places.keys) }

    /// The scene of a stream, and the job that should show it; nil if there is no job.
    func scene(
        of stream: StreamID, name: (ComposedSpeaker) -> String
    ) -> (job: JobID, scene: CompositionScene)? {
        guard case .open(let programme) = places[stream], let job = programme.job else { return nil }
        return (job.id, programme.scene(name: name))
    }

    // MARK: What stages tell

    /// Sets the speakers to be composed in a stream; none to end its composition.
    mutating func compose(
        _ speakers: [ComposedSpeaker], in stream: StreamID, _ situation: Situation, at now: MonotonicTime
    ) -> [Effect] {
        switch places[stream] {
        case .open(var programme):
            let effects = programme.compose(speakers, isLive: situation.isLive, at: now)
            places[stream] = .open(programme)
            return effects
        case .opening where !speakers.isEmpty:
            places[stream] = .opening(speakers)
            return []
        case nil, .resting, .waiting, .opening:
            guard speakers.isEmpty else { return admit(speakers, in: stream, situation) }
            places[stream] = nil
            return []
        }
    }

    /// Opens a composition, unless it has no viewers or there is no room.
    ///
    /// Refusal is reported only on the first attempt, not on each retry.
    private mutating func admit(
        _ speakers: [ComposedSpeaker], in stream: StreamID, _ situation: Situation
    ) -> [Effect] {
        guard situation.isWatched else {
            places[stream] = .resting(speakers)
            return []
        }
        guard let effects = makeRoom() else {
            defer { places[stream] = .waiting(speakers) }
            if case .waiting = places[stream] { return [] }
            return [.report(stream, .refused)]
        }
        places[stream] = .opening(speakers)
        return effects + [.open(stream)]
    }

    /// Ends the composition that has been idle longest if the limit is reached.
    /// - Returns: the effects of that; nil if there is no room even so.
    private mutating func makeRoom() -> [Effect]? {
        var count = 0
        var idle: [(since: MonotonicTime, stream: StreamID)] = []
        for (stream, place) in places {
            switch place {
            case .resting, .waiting: break
            case .opening: count += 1
            case .open(let programme):
                count += 1
                if let since = programme.idleSince { idle.append((since, stream)) }
            }
        }
        guard count >= limit else { return [] }
        let longest = idle.min { ($0.since, $0.stream.description) < ($1.since, $1.stream.description) }
        return longest.map { end($0.stream) }
    }

    /// All places, in an order that is the same in each run.
    private func sorted() -> [(key: StreamID, value: Place)] {
        places.sorted { $0.key.description < $1.key.description }
    }

    /// Applies a stream's settings, if they have changed.
    mutating func update(_ settings: CompositionSettings, of stream: StreamID) -> [Effect] {
        change(stream) { $0.update(settings) }
    }

    /// Requests a key frame from the publisher of a track, if the track is composed.
    func refresh(_ track: PublishedTrack, in stream: StreamID) -> [Effect] {
        guard case .open(let programme) = places[stream], let feed = programme.job?.feeds[track.key] else {
            return []
        }
        return [.refresh(feed)]
    }

    // MARK: What workers tell

    /// Handles that a worker was asked to make the tracks.
    /// - Parameter injection: nil if the worker accepts no more.
    mutating func opened(
        _ injection: InjectionID?, of stream: StreamID, _ situation: Situation
    ) -> [Effect] {
        guard case .opening(let speakers) = places[stream] else {
            // The composition is no longer wanted, so the new injection is closed.
            return injection.map { [.close($0)] } ?? []
        }
        guard let injection else {
            // A worker whose mailbox is full soon has room again.
            places[stream] = .waiting(speakers)
            return []
        }
        let programme = ComposedProgramme(
            of: stream, into: injection, speakers: speakers, settings: situation.settings)
        places[stream] = .open(programme)
        return programme.begin(isLive: situation.isLive) + programme.give()
    }

    /// Notes the tracks that the worker has made.
    mutating func made(_ tracks: [PublishedTrack], of stream: StreamID) -> [Effect] {
        change(stream) { $0.made(tracks) }
    }

    /// Requests a key frame from the job, because a viewer waits for one.
    func keyFrameWanted(of stream: StreamID) -> [Effect] {
        guard case .open(let programme) = places[stream], let job = programme.job else { return [] }
        return [.makeKeyFrame(job.id)]
    }

    // MARK: What jobs tell

    /// Notes the job that was begun; ends it if the composition is gone by now.
    mutating func began(_ job: JobID, of stream: StreamID) -> [Effect] {
        guard case .open(var programme) = places[stream] else { return [.end(job)] }
        defer { places[stream] = .open(programme) }
        return programme.began(job)
    }

    /// Notes that a track is fed to a job; stops it if the composition is gone by now.
    mutating func fed(_ feed: ComposedProgramme.Feed, to job: JobID, of stream: StreamID) -> [Effect] {
        guard case .open(var programme) = places[stream] else { return [.stop(feed)] }
        defer { places[stream] = .open(programme) }
        return programme.fed(feed, to: job)
    }

    /// Handles an event of a job; events of jobs that have ended are ignored.
    mutating func receive(
        _ event: CompositionEvent, of stream: StreamID, _ situation: Situation
    ) -> [Effect] {
        guard case .open(var programme) = places[stream], programme.job?.id == event.job else { return [] }
        defer { places[stream] = .open(programme) }
        if case .lost = event { lost &+= 1 }
        return programme.receive(event, isLive: situation.isLive)
    }

    // MARK: Time

    /// Ends compositions that were idle or unwatched for long enough, and retries those that could not begin.
    mutating func advance(to now: MonotonicTime, _ situation: (StreamID) -> Situation) -> [Effect] {
        var effects: [Effect] = []
        // First, because compositions that end make room for those that wait.
        for case (let stream, .open(let programme)) in sorted() {
            effects += advance(programme, situation(stream), to: now)
        }
        // Once one composition found no room, the others need not try: each attempt walks over all places.
        var isFull = false
        for (stream, place) in sorted() {
            switch place {
            case .opening, .open: break
            case .resting(let speakers), .waiting(let speakers):
                let situation = situation(stream)
                if !situation.hasStage {
                    places[stream] = nil
                } else if case .waiting = place, isFull, situation.isWatched {
                    continue
                } else {
                    effects += admit(speakers, in: stream, situation)
                    if case .waiting = places[stream] { isFull = true }
                }
            }
        }
        return effects
    }

    /// Ends, rests or goes on with one composition; a job that was lost or refused is begun again.
    private mutating func advance(
        _ programme: ComposedProgramme, _ situation: Situation, to now: MonotonicTime
    ) -> [Effect] {
        var programme = programme
        guard situation.hasStage, programme.idleSince.map({ now < $0 + Self.idleTime }) ?? true else {
            return end(programme.stream)
        }
        if programme.isUnwatched(situation.isWatched, at: now) {
            let effects = end(programme.stream)
            places[programme.stream] = .resting(programme.speakers)
            return [.report(programme.stream, .rests)] + effects
        }
        places[programme.stream] = .open(programme)
        return programme.begin(isLive: situation.isLive)
    }

    private mutating func end(_ stream: StreamID) -> [Effect] {
        guard case .open(let programme) = places.removeValue(forKey: stream) else { return [] }
        return programme.end()
    }

    private mutating func change(
        _ stream: StreamID, _ body: (inout ComposedProgramme) -> [Effect]
    ) -> [Effect] {
        guard case .open(var programme) = places[stream] else { return [] }
        defer { places[stream] = .open(programme) }
        return body(&programme)
    }
}
