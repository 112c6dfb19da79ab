import Base
import Forwarding
import Peer
import Stage
import Transcoder

/// The composition of one stream: its speakers, the tracks that viewers receive, and the transcoder job that makes
/// them.
///
/// Pure: it returns effects and awaits nothing. The injection and its tracks outlive a job: if the transcoder's
/// process dies, the next job fills the same tracks.
struct ComposedProgramme {
    typealias Effect = CompositionDesk.Effect

    /// A track that the job should receive.
    struct Want: Equatable {
        let track: PublishedTrack
        /// The session that publishes the track.
        let session: SessionID
        /// In pixels, because a larger layer would only be scaled down; nil for the largest layer.
        let maximumHeight: Int?
    }

    /// A track that the job receives, by a tap on its worker and an input of the transcoder.
    struct Feed: Equatable {
        let input: InputID
        let tap: TapID
        let track: PublishedTrack
        var maximumHeight: Int?
    }

    /// One run of the job; another one follows if the transcoder's process dies.
    struct Job {
        let id: JobID
        fileprivate(set) var feeds: [TrackKey: Feed] = [:]
        /// Whether viewers may receive it: its first picture, a key frame, was sent.
        fileprivate(set) var isPlayable = false
        /// As the job last reported it.
        fileprivate(set) var status = CompositionStatus()
    }

    let stream: StreamID
    private let injection: InjectionID
    /// Empty until the worker has made them.
    private var tracks: [PublishedTrack] = []
    /// Nil before the job begins, and between two runs of the transcoder.
    private(set) var job: Job?
    private(set) var speakers: [ComposedSpeaker]
    private var settings: CompositionSettings
    /// When the last speaker left; nil while there is one.
    ///
    /// The composition is kept for a while after that, because people come back.
    private(set) var idleSince: MonotonicTime?
    /// When the last viewer was seen to be gone; nil while there is one.
    private var unwatchedSince: MonotonicTime?

    /// The m-line of the mix.
    static let audio = SourcePlan(
        mid: "a", kind: .audio, formats: [MediaFormat(codec: .opus, payloadType: 111)])
    /// The m-line of the picture, in two layers of which the small one comes first.
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

    /// Sets the speakers; none if the composition is no longer needed.
    mutating func compose(_ new: [ComposedSpeaker], isLive: Bool, at now: MonotonicTime) -> [Effect] {
        speakers = new
        idleSince = new.isEmpty ? now : nil
        guard !new.isEmpty else { return [] }
        return (job == nil ? begin(isLive: isLive) : feed()) + give()
    }

    /// Applies new settings; a changed size may change which layers the job should receive.
    mutating func update(_ new: CompositionSettings) -> [Effect] {
        guard settings != new else { return [] }
        settings = new
        return feed()
    }

    /// Whether it has had no viewers for `CompositionDesk.unwatchedTime`, and so should rest.
    mutating func isUnwatched(_ isWatched: Bool, at now: MonotonicTime) -> Bool {
        guard !isWatched, !speakers.isEmpty else {
            if isWatched { unwatchedSince = nil }
            return false
        }
        let since = unwatchedSince ?? now
        unwatchedSince = since
        return now >= since + CompositionDesk.unwatchedTime
    }

    /// The scene that the job should show: the settings, and each speaker with the inputs of their tracks.
    ///
    /// A speaker whose track has no input yet is in the scene without a picture or without sound.
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

    /// Begins the job, unless it runs, there are no speakers, or the stream is not live.
    func begin(isLive: Bool) -> [Effect] {
        guard job == nil, !speakers.isEmpty, isLive else { return [] }
        return [.begin(stream, injection, settings)]
    }

    /// Takes over a job that was begun, and feeds it; ends it if another one was begun meanwhile.
    mutating func began(_ id: JobID) -> [Effect] {
        guard job == nil else { return [.end(id)] }
        job = Job(id: id)
        return [.report(stream, .begun(speakers: speakers.count))] + feed()
    }

    /// Compares the tracks that the job should receive with those it does, and returns the differences.
    ///
    /// Tracks that are no longer wanted stop only after the job was sent the scene without them.
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
            // The tap's limit is changed: a tap that is opened anew would begin with everything in the cache.
            feed.maximumHeight = want.maximumHeight
            job.feeds[key] = feed
            changes.append(.limit(feed))
        }
        changes += wants.filter { job.feeds[$0.track.key] == nil }.map { .feed(stream, job.id, $0) }
        self.job = job
        return changes + [.show(stream)] + finished
    }

    /// In the order of the speakers, the picture of each before the sound.
    private var wants: [Want] {
        speakers.flatMap { speaker in
            let session = speaker.id.session
            return [
                speaker.video.map { Want(track: $0, session: session, maximumHeight: height(of: speaker)) },
                speaker.audio.map { Want(track: $0, session: session, maximumHeight: nil) },
            ].compactMap(\.self)
        }
    }

    /// The largest useful height of a speaker's picture, in pixels; nil for a shared screen, which needs its full
    /// size.
    private func height(of speaker: ComposedSpeaker) -> Int? {
        guard !speaker.isScreen else { return nil }
        let count = speakers.count
        // The rows of a grid with that many pictures. The shorter side counts, for compositions in portrait format.
        let rows = count <= 2 ? 1 : count <= 6 ? 2 : 3
        return max(min(settings.height, settings.width) / rows, 180)
    }

    /// Notes that a track is fed to the job; stops it if the job or the want is another one by now.
    mutating func fed(_ feed: Feed, to id: JobID) -> [Effect] {
        guard job?.id == id, job?.feeds[feed.track.key] == nil else { return [.stop(feed)] }
        job?.feeds[feed.track.key] = feed
        return []
    }

    /// Handles an event of the job.
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
            // Viewers see the active speaker until the next job is playable.
            return [.report(stream, .lost)] + feeds + give() + begin(isLive: isLive)
        }
    }

    // MARK: What viewers get

    /// Notes the tracks that the worker has made.
    mutating func made(_ new: [PublishedTrack]) -> [Effect] {
        tracks = new
        return give()
    }

    /// Gives viewers the composition if it is playable, and takes it away if not.
    func give() -> [Effect] {
        [.give(stream, job?.isPlayable == true ? tracks : [])]
    }

    // MARK: The end

    /// Takes the composition from the viewers first, then ends what it is made of.
    func end() -> [Effect] {
        [.give(stream, [])] + stopFeeds() + (job.map { [.end($0.id)] } ?? [])
            + [.close(injection), .report(stream, .ended)]
    }

    /// In the order of the taps' numbers, so that the same run has the same effects.
    private func stopFeeds() -> [Effect] {
        (job?.feeds ?? [:]).values.sorted { $0.tap.number < $1.tap.number }.map { .stop($0) }
    }
}

extension StageDetails.Composition {
    /// The settings in the form that the job expects.
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
