import Base
import Codecs
import Foundation
import Synchronization
import Transcoder

/// Whether pictures and sound can be decoded and encoded here, by a process that is confined.
enum TranscoderCheck {
    /// In all; on a machine with work to do the process takes a second.
    private static let timeout = Duration.seconds(15)

    static func examine(_ configuration: Configuration) async -> [Finding] {
        guard let settings = configuration.transcoderSettings else {
            return [.ok("transcoder", "off: no previews, compositions, renditions and recordings")]
        }
        let trial = await drawCard(settings)
        return [
            judgeCodecs(CodecLibraries.videoDecoders),
            judge(
                hasDrawn: trial.hasDrawn, complaints: trial.complaints,
                mustBeConfined: settings.mustBeConfined),
        ]
    }

    static func judgeCodecs(_ decoders: [(name: String, isThere: Bool)]) -> Finding {
        let missing = decoders.filter { !$0.isThere }.map(\.name)
        guard missing.isEmpty else {
            return .warn(
                "codecs", "no decoder for \(missing.joined(separator: ", "))",
                remedy: "streams in it have no previews and compositions; install Debian's own libavcodec59")
        }
        return .ok("codecs", decoders.map(\.name).joined(separator: ", "))
    }

    static func judge(hasDrawn: Bool, complaints: [String], mustBeConfined: Bool) -> Finding {
        let reason = complaints.isEmpty ? "" : " (\(complaints.joined(separator: "; ")))"
        switch (hasDrawn, complaints.isEmpty) {
        case (true, true): return .ok("transcoder", "it starts, is confined, and draws")
        case (true, false):
            return .warn(
                "transcoder", "it starts and draws, but not all of its confinement is there\(reason)",
                remedy:
                    "a hostile picture may reach more than it should; use Linux 5.13 or later with Landlock")
        case (false, _):
            let confinement =
                mustBeConfined
                ? "see that Landlock (Linux 5.13) and seccomp are there, or give --transcoder off"
                : "give --transcoder off"
            return .fail("transcoder", "it does not start, or does not draw\(reason)", remedy: confinement)
        }
    }

    /// Has a process of its own draw something.
    private static func drawCard(_ settings: TranscoderSettings) async -> (
        hasDrawn: Bool, complaints: [String]
    ) {
        let complaints = Mutex<[String]>([])
        let log = Log(level: .warning) { entry in complaints.withLock { $0.append(entry.text) } }
        let supervisor = TranscoderSupervisor(settings, log: log)
        let (events, continuation) = AsyncStream.makeStream(
            of: Bool.self, bufferingPolicy: .bufferingOldest(1))
        let request = CardRequest(stream: "doctor", title: "Doctor", host: "Rostrum")
        let job = supervisor.begin(.card, request.bytes) { event in
            switch event {
            case .report(let bytes): continuation.yield((try? PreviewPicture.read(bytes)) != nil)
            case .ended, .lost: continuation.yield(false)
            case .packet, .keyFrameWanted: break
            }
        }
        let deadline = Task {
            do { try await Task.sleep(for: timeout) } catch { return }
            continuation.yield(false)
        }
        var hasDrawn = false
        if job != nil {
            for await event in events {
                hasDrawn = event
                break
            }
        }
        deadline.cancel()
        supervisor.stop()
        return (hasDrawn, complaints.withLock { $0 })
    }
}
