import Base
import Forwarding
import Transcoder

/// What feeds a job with a stream's programme: one input for the picture and one for sound, and the taps behind them.
package struct ProgrammeInputs: Sendable {
    private struct Feed {
        let source: ProgrammeSource
        let tap: TapID
        let input: InputID
    }

    private let taps: any ProgrammeTaps
    private let transcoder: TranscoderSupervisor
    private let origin: @Sendable (SessionID?, StreamID) -> SourceOrigin
    private var video: Feed?
    private var audio: Feed?

    /// - Parameter origin: what a source is read for.
    package init(
        _ taps: any ProgrammeTaps, _ transcoder: TranscoderSupervisor,
        origin: @escaping @Sendable (SessionID?, StreamID) -> SourceOrigin = SourceOrigin.recording
    ) {
        self.taps = taps
        self.transcoder = transcoder
        self.origin = origin
    }

    /// Sees to it that what viewers get now is what the job gets.
    /// - Parameter ended: called on a worker's thread; `tapEnded` is to follow.
    package mutating func connect(
        to programme: RecordingDesk.Programme?, of stream: StreamID, for job: JobID,
        ended: @escaping @Sendable (TapID) -> Void
    ) {
        connect(&video, to: programme?.video, .vp8, of: stream, for: job, ended)
        connect(&audio, to: programme?.audio, .opus, of: stream, for: job, ended)
    }

    /// Nothing more comes of what it is connected to.
    package mutating func disconnect() {
        disconnect(&video)
        disconnect(&audio)
    }

    /// Nothing more comes of its picture.
    package mutating func disconnectVideo() {
        disconnect(&video)
    }

    /// Nothing more comes of a tap.
    package mutating func tapEnded(_ tap: TapID) {
        for feed in [video, audio] {
            guard let feed, feed.tap == tap else { continue }
            transcoder.close(feed.input)
        }
        if video?.tap == tap { video = nil }
        if audio?.tap == tap { audio = nil }
    }

    /// The transcoder can go on only with a key frame.
    package func keyFrameWanted(for input: InputID) {
        guard let video, video.input == input else { return }
        taps.demandKeyFrame(video.tap, of: video.source)
    }

    private func connect(
        _ feed: inout Feed?, to source: ProgrammeSource?, _ codec: InputCodec, of stream: StreamID,
        for job: JobID, _ ended: @escaping @Sendable (TapID) -> Void
    ) {
        guard feed?.source != source else { return }
        disconnect(&feed)
        guard let source, source.target != nil,
            let input = transcoder.open(
                for: job, from: SourceKey(origin(source.session, stream)), codec)
        else { return }
        guard let tap = taps.open(source, into: input, ended: ended) else {
            return transcoder.close(input)
        }
        feed = Feed(source: source, tap: tap, input: input)
    }

    private func disconnect(_ feed: inout Feed?) {
        guard let old = feed else { return }
        taps.close(old.tap, of: old.source)
        transcoder.close(old.input)
        feed = nil
    }
}
