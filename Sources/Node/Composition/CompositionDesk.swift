import Base
import Forwarding
import Transcoder

/// Which streams are composed, of whom, and what their viewers get of it.
///
/// Pure: what stages, jobs and the clock say comes in, and what has to be done about it comes out, to be carried out in
/// order. Workers and the transcoder name what they make: `opened`, `began` and `fed` follow the effects that ask for
/// it, and give back what nobody needs any more by then.
struct CompositionDesk {
    /// What a stream's composition depends on besides who is on its stage.
    struct Situation: Equatable {
        /// Whether anybody has a session on its stage.
        var hasStage = true
        /// What is composed backstage, nobody would see.
        var isLive = true
        /// Whether anybody would see it: a viewer, connected or not yet, or a recording.
        ///
        /// Those who come see who speaks, from the cache and so at once, and the composition as soon as it is there.
        var isWatched = true
        var settings = CompositionSettings()
    }

    /// What has to be done.
    enum Effect: Equatable {
        /// Make its tracks on a worker; `opened` follows.
        case open(StreamID)
        case close(InjectionID)
        /// Begin the job that fills the tracks; `began` follows if there is one.
        case begin(StreamID, InjectionID, CompositionSettings)
        case end(JobID)
        /// Hand a track to the job; `fed` follows if that can be done.
        case feed(StreamID, JobID, ComposedProgramme.Want)
        case limit(ComposedProgramme.Feed)
        case stop(ComposedProgramme.Feed)
        /// Have the publisher make a key frame.
        case refresh(ComposedProgramme.Feed)
        /// Have the job make a key frame.
        case makeKeyFrame(JobID)
        /// Tell the job who is to be seen: `scene`, as it is once that is carried out.
        case show(StreamID)
        /// What viewers may have of it; nothing where they see who speaks instead.
        case give(StreamID, [PublishedTrack])
        case report(StreamID, Report)
    }

    /// What an operator hears of it.
    enum Report: Equatable {
        /// There is no room for it.
        case refused
        case begun(speakers: Int)
        /// Load leaves more or less of its quality than before.
        case level(CompositionStatus)
        /// The transcoder's process is gone.
        case lost
        /// Nobody watches any more.
        case rests
        case ended
    }

    /// How far a stream's composition is, which somebody would be in.
    private enum Place {
        /// Nobody watches.
        case resting([ComposedSpeaker])
        /// There is no room.
        case waiting([ComposedSpeaker])
        /// Its tracks are being made.
        case opening([ComposedSpeaker])
        case open(ComposedProgramme)
    }

    /// A composition that nobody needs is kept for so long: people leave and come back.
    static let idleTime = Duration.seconds(5)
    /// One that nobody watches, for so long: whoever swipes comes back sooner.
    static let unwatchedTime = Duration.seconds(10)

    /// Of compositions at the same time.
    var limit: Int
    private var places: [StreamID: Place] = [:]
    private var lost: UInt64 = 0

    init(limit: Int) {
        self.limit = limit
    }

    /// How compositions do that go on now, how many wait for room, how many for somebody who watches, and how many were
    /// lost with the process so far.
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

    /// Streams of which somebody would be in a composition.
    var streams: [StreamID] { Array(places.keys) }

    /// What a stream's job is to show, and which job that is; nil where there is none.
    func scene(
        of stream: StreamID, name: (ComposedSpeaker) -> String
    ) -> (job: JobID, scene: CompositionScene)? {
        guard case .open(let programme) = places[stream], let job = programme.job else { return nil }
        return (job.id, programme.scene(name: name))
    }

    // MARK: What stages tell

    /// Takes in who is to be composed in a stream; nobody for no composition.
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

    /// Opens a composition, unless nobody watches or there is no room.
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

    /// Ends what is not needed any longer where one more would be too many.
    /// - Returns: nil if there is no room all the same.
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

    /// In an order that is the same in each run.
    private func sorted() -> [(key: StreamID, value: Place)] {
        places.sorted { $0.key.description < $1.key.description }
    }

    /// Takes in that a stream's settings may have changed.
    mutating func update(_ settings: CompositionSettings, of stream: StreamID) -> [Effect] {
        change(stream) { $0.update(settings) }
    }

    /// The publisher of a track that is composed is to make a key frame.
    func refresh(_ track: PublishedTrack, in stream: StreamID) -> [Effect] {
        guard case .open(let programme) = places[stream], let feed = programme.job?.feeds[track.key] else {
            return []
        }
        return [.refresh(feed)]
    }

    // MARK: What workers tell

    /// The worker has been asked for tracks.
    /// - Parameter injection: nil if it takes no more.
    mutating func opened(
        _ injection: InjectionID?, of stream: StreamID, _ situation: Situation
    ) -> [Effect] {
        guard case .opening(let speakers) = places[stream] else {
            return injection.map { [.close($0)] } ?? []
        }
        guard let injection else {
            places[stream] = nil
            return []
        }
        let programme = ComposedProgramme(
            of: stream, into: injection, speakers: speakers, settings: situation.settings)
        places[stream] = .open(programme)
        return programme.begin(isLive: situation.isLive) + programme.give()
    }

    /// The tracks are there.
    mutating func made(_ tracks: [PublishedTrack], of stream: StreamID) -> [Effect] {
        change(stream) { $0.made(tracks) }
    }

    /// A viewer waits for a key frame.
    func keyFrameWanted(of stream: StreamID) -> [Effect] {
        guard case .open(let programme) = places[stream], let job = programme.job else { return [] }
        return [.makeKeyFrame(job.id)]
    }

    // MARK: What jobs tell

    mutating func began(_ job: JobID, of stream: StreamID) -> [Effect] {
        guard case .open(var programme) = places[stream] else { return [.end(job)] }
        defer { places[stream] = .open(programme) }
        return programme.began(job)
    }

    mutating func fed(_ feed: ComposedProgramme.Feed, to job: JobID, of stream: StreamID) -> [Effect] {
        guard case .open(var programme) = places[stream] else { return [.stop(feed)] }
        defer { places[stream] = .open(programme) }
        return programme.fed(feed, to: job)
    }

    /// Takes in what a job says; of a job that is over, nothing.
    mutating func receive(
        _ event: CompositionEvent, of stream: StreamID, _ situation: Situation
    ) -> [Effect] {
        guard case .open(var programme) = places[stream], programme.job?.id == event.job else { return [] }
        defer { places[stream] = .open(programme) }
        if case .lost = event { lost &+= 1 }
        return programme.receive(event, isLive: situation.isLive)
    }

    // MARK: Time

    /// Ends compositions that nobody needed for a while, and begins again what could not begin.
    mutating func advance(to now: MonotonicTime, _ situation: (StreamID) -> Situation) -> [Effect] {
        var effects: [Effect] = []
        // What ends makes room for what waits.
        for case (let stream, .open(let programme)) in sorted() {
            effects += advance(programme, situation(stream), to: now)
        }
        // Where there was no room for one there is none for the next, and to look takes a walk over all.
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
