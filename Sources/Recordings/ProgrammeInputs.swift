import Base
import Forwarding
import Transcoder

/// Feeds a stream's programme to a transcoder job: one input for video and one for audio, with the taps behind them.
package struct ProgrammeInputs: Sendable {
    /// A tap and the input that it feeds.
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

    /// - Parameter origin: names what a source is decoded for, so that a decoder's crash is attributed to it.
    package init(
        _ taps: any ProgrammeTaps, _ transcoder: TranscoderSupervisor,
        origin: @escaping @Sendable (SessionID?, StreamID) -> SourceOrigin = SourceOrigin.recording
    ) {
        self.taps = taps
        self.transcoder = transcoder
        self.origin = origin
    }

    /// Connects the job to what viewers receive now.
    /// - Parameter ended: called on a worker's thread when a tap ends; the caller then calls `tapEnded`.
    package mutating func connect(
        to programme: RecordingDesk.Programme?, of stream: StreamID, for job: JobID,
        ended: @escaping @Sendable (TapID) -> Void
    ) {
        connect(&video, to: programme?.video, .vp8, of: stream, for: job, ended)
        connect(&audio, to: programme?.audio, .opus, of: stream, for: job, ended)
    }

    /// Closes both taps and their inputs.
    package mutating func disconnect() {
        disconnect(&video)
        disconnect(&audio)
    }

    /// Closes the video tap and its input.
    package mutating func disconnectVideo() {
        disconnect(&video)
    }

    /// Closes the input of a tap that has ended.
    package mutating func tapEnded(_ tap: TapID) {
        for feed in [video, audio] {
            guard let feed, feed.tap == tap else { continue }
            transcoder.close(feed.input)
        }
        if video?.tap == tap { video = nil }
        if audio?.tap == tap { audio = nil }
    }

    /// Requests a key frame from the publisher, without which the transcoder cannot continue.
    package func keyFrameWanted(for input: InputID) {
        guard let video, video.input == input else { return }
        taps.demandKeyFrame(video.tap, of: video.source)
    }

    /// Replaces a feed if its source has changed.
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
        // Without a tap the input would never receive anything.
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
