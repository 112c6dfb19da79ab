import Base
import Forwarding
import Ingest
import Peer
import Transcoder
import Wire

/// Where a publisher's media goes, once there is a session for it.
struct IngestInlet: Sendable {
    /// Media by the places of its sources; nil for what does not come.
    struct Sources: Sendable {
        let audio: Int?
        let video: Int?
        let plans: [SourcePlan]
        /// Whether pictures are made anew.
        let isConverted: Bool

        init(_ formats: IngestFormats) {
            audio = formats.hasAudio ? 0 : nil
            video = formats.hasVideo ? (formats.hasAudio ? 1 : 0) : nil
            isConverted = formats.conversion != nil
            let video = isConverted ? Self.convertedPlan : Self.videoPlan
            plans = (formats.hasAudio ? [Self.audioPlan] : []) + (formats.hasVideo ? [video] : [])
        }

        /// As the transcoder makes it.
        private static let audioPlan = SourcePlan(
            mid: "a", kind: .audio, formats: [MediaFormat(codec: .opus, payloadType: 111)])
        private static let convertedPlan = SourcePlan(
            mid: "v", kind: .video, formats: [MediaFormat(codec: .vp8, payloadType: 96)])
        private static let videoPlan = SourcePlan(
            mid: "v", kind: .video,
            formats: [
                MediaFormat(
                    codec: .h264(packetizationMode: 1), payloadType: H264Packetizer.payloadType)
            ],
            answersKeyFrameRequests: false)
    }

    let session: SessionID
    let sources: Sources
    /// Nil where nothing is decoded.
    let transcoder: TranscoderSupervisor?
    private let worker: WorkerHandle

    init(
        session: SessionID, worker: WorkerHandle, sources: Sources, transcoder: TranscoderSupervisor?
    ) {
        self.session = session
        self.worker = worker
        self.sources = sources
        self.transcoder = transcoder
    }

    /// A picture that viewers get as it is.
    func send(_ picture: IngestPicture) {
        guard let place = sources.video else { return }
        var packets = InjectedPackets()
        for packet in picture.packets {
            packets.append(packet.span, source: place, captured: picture.captured)
        }
        // A worker that takes nothing is far behind: it drops pictures as a full socket would.
        _ = worker.post(.ingest(session, packets))
    }

    /// A packet of the sound that the transcoder made.
    func send(sound: OutputPacket) { send(sound, to: sources.audio) }

    /// A packet of the picture that the transcoder made.
    func send(converted picture: OutputPacket) { send(picture, to: sources.video) }

    private func send(_ packet: OutputPacket, to source: Int?) {
        guard let source else { return }
        var packets = InjectedPackets()
        packets.append(packet.bytes.span, source: source, captured: packet.captured)
        _ = worker.post(.ingest(session, packets))
    }
}
