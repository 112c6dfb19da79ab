import Base
import Forwarding
import Peer
import Stage
import Transcoder
import Wire

/// One stream's composition: the tracks that viewers get, who is in it, and the job in the transcoder that makes it.
struct ComposedProgramme {
    typealias Effect = CompositionDesk.Effect

    /// A track that is to be fed to the job.
    struct Want: Equatable {
        let track: PublishedTrack
        /// Whose it is.
        let session: SessionID
        /// A layer that is larger would be scaled down for nothing; nil for the largest.
        let maximumHeight: Int?
    }

    /// A track that is fed to the job.
    struct Feed: Equatable {
        let input: InputID
        let tap: TapID
        let track: PublishedTrack
        var maximumHeight: Int?
    }

    /// One life of the job.
    struct Job {
        let id: JobID
        fileprivate(set) var feeds: [TrackKey: Feed] = [:]
        /// Whether viewers may have it: its first key frame is there.
        fileprivate(set) var isPlayable = false
        fileprivate(set) var status = CompositionStatus()
    }

    let stream: StreamID
    private let injection: InjectionID
    private var tracks: [PublishedTrack] = []
    /// Nil between two lives of the transcoder.
    private(set) var job: Job?
    private(set) var speakers: [ComposedSpeaker]
    private var settings: CompositionSettings
    /// No longer needed since; kept for a while, because people come back.
    private(set) var idleSince: MonotonicTime?
    /// Nobody has watched it since.
    private var unwatchedSince: MonotonicTime?

    /// The mix.
    static let audio = SourcePlan(
        mid: "a", kind: .audio, formats: [MediaFormat(codec: .opus, payloadType: 111)])
    /// The picture, with its small copy first.
    static let video = SourcePlan(
        mid: "v", kind: .video, formats: [MediaFormat(codec: .vp8, payloadType: 96)], rids: ["small", "full"])

    init(
        of stream: StreamID, into injection: InjectionID, speakers: [ComposedSpeaker],
        settings: CompositionSettings
    ) {
        self.stream = stream
        self.injection = injection
        self.speakers = speakers
        self.settings = settings
    }

    // MARK: Who is in it

    /// Takes in who is to be seen; nobody if it is not needed any longer.
    mutating func compose(_ new: [ComposedSpeaker], isLive: Bool, at now: MonotonicTime) -> [Effect] {
        speakers = new
        idleSince = new.isEmpty ? now : nil
        guard !new.isEmpty else { return [] }
        return (job == nil ? begin(isLive: isLive) : feed()) + give()
    }

    mutating func update(_ new: CompositionSettings) -> [Effect] {
        guard settings != new else { return [] }
        settings = new
        return feed()
    }

    /// Whether nobody has watched it for so long that it should rest.
    mutating func isUnwatched(_ isWatched: Bool, at now: MonotonicTime) -> Bool {
        guard !isWatched, !speakers.isEmpty else {
            if isWatched { unwatchedSince = nil }
            return false
        }
        let since = unwatchedSince ?? now
        unwatchedSince = since
        return now >= since + CompositionDesk.unwatchedTime
    }

    /// What the composer is told of the stage.
    func scene(name: (ComposedSpeaker) -> String) -> CompositionScene {
        let feeds = job?.feeds ?? [:]
        return CompositionScene(
            settings: settings,
            speakers: speakers.map { speaker in
                var person = CompositionSpeaker(
                    id: "\(speaker.id.session.label)/\(speaker.id.screen ?? "")", name: name(speaker))
                person.video = speaker.video.flatMap { feeds[$0.key]?.input.number }
                person.audio = speaker.audio.flatMap { feeds[$0.key]?.input.number }
                person.hasPicture = speaker.hasPicture && person.video != nil
                person.isSpeaking = speaker.isSpeaking
                person.isScreen = speaker.isScreen
                person.arrival = speaker.arrival
                return person
            })
    }

    // MARK: The job

    /// Has the job begun, unless there is one, or nobody whom it could show to anybody.
    func begin(isLive: Bool) -> [Effect] {
        guard job == nil, !speakers.isEmpty, isLive else { return [] }
        return [.begin(stream, injection, settings)]
    }

    mutating func began(_ id: JobID) -> [Effect] {
        guard job == nil else { return [.end(id)] }
        job = Job(id: id)
        return [.report(stream, .begun(speakers: speakers.count))] + feed()
    }

    /// Has the job fed what its speakers send, and told who they are.
    private mutating func feed() -> [Effect] {
        guard var job else { return [] }
        let wants = wants
        let known = Dictionary(wants.map { ($0.track.key, $0) }) { $1 }
        var (changes, finished): ([Effect], [Effect]) = ([], [])
        for var feed in job.feeds.values.sorted(by: { $0.tap.number < $1.tap.number }) {
            let key = feed.track.key
            guard let want = known[key] else {
                job.feeds[key] = nil
                finished.append(.stop(feed))
                continue
            }
            guard want.maximumHeight != feed.maximumHeight else { continue }
            // Opened anew it would begin with all that the cache holds.
            feed.maximumHeight = want.maximumHeight
            job.feeds[key] = feed
            changes.append(.limit(feed))
        }
        changes += wants.filter { job.feeds[$0.track.key] == nil }.map { .feed(stream, job.id, $0) }
        self.job = job
        return changes + [.show(stream)] + finished
    }

    private var wants: [Want] {
        speakers.flatMap { speaker in
            let session = speaker.id.session
            return [
                speaker.video.map { Want(track: $0, session: session, maximumHeight: height(of: speaker)) },
                speaker.audio.map { Want(track: $0, session: session, maximumHeight: nil) },
            ].compactMap(\.self)
        }
    }

    /// Of somebody's picture in the composition.
    private func height(of speaker: ComposedSpeaker) -> Int? {
        guard !speaker.isScreen else { return nil }
        let count = speakers.count
        let rows = count <= 2 ? 1 : count <= 6 ? 2 : 3
        return max(min(settings.height, settings.width) / rows, 180)
    }

    mutating func fed(_ feed: Feed, to id: JobID) -> [Effect] {
        guard job?.id == id, job?.feeds[feed.track.key] == nil else { return [.stop(feed)] }
        job?.feeds[feed.track.key] = feed
        return []
    }

    /// Takes in what its job says.
    mutating func receive(_ event: CompositionEvent, isLive: Bool) -> [Effect] {
        switch event {
        case .playable:
            job?.isPlayable = true
            return give()
        case .status(_, let status):
            let before = job?.status.level
            job?.status = status
            return status.level == before ? [] : [.report(stream, .level(status))]
        case .keyFrameWanted(_, let input):
            return job?.feeds.values.first { $0.input == input }.map { [.refresh($0)] } ?? []
        case .lost:
            let feeds = stopFeeds()
            job = nil
            // Viewers see who speaks, until everybody is there again.
            return [.report(stream, .lost)] + feeds + give() + begin(isLive: isLive)
        }
    }

    // MARK: What viewers get

    mutating func made(_ new: [PublishedTrack]) -> [Effect] {
        tracks = new
        return give()
    }

    /// Lets viewers have the composition if it is there.
    func give() -> [Effect] {
        [.give(stream, job?.isPlayable == true ? tracks : [])]
    }

    // MARK: The end

    func end() -> [Effect] {
        [.give(stream, [])] + stopFeeds() + (job.map { [.end($0.id)] } ?? [])
            + [.close(injection), .report(stream, .ended)]
    }

    private func stopFeeds() -> [Effect] {
        (job?.feeds ?? [:]).values.sorted { $0.tap.number < $1.tap.number }.map { .stop($0) }
    }
}

extension StageDetails.Composition {
    /// As the job takes them.
    var settings: CompositionSettings {
        var settings = CompositionSettings()
        settings.width = width
        settings.height = height
        settings.framesPerSecond = framesPerSecond
        settings.bitrate = bitrate
        settings.layout = layout == .grid ? .grid : .spotlight
        settings.background = background.rgb
        return settings
    }
}
