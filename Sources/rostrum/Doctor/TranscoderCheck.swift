import Base
import Codecs
import Foundation
import Synchronization
import Transcoder

/// Checks whether a confined child process can decode and encode pictures and sound on this machine.
enum TranscoderCheck {
    /// For the whole trial; on a busy machine the process takes a second to start.
    private static let timeout = Duration.seconds(15)

    static func examine(_ configuration: Configuration) async -> [Finding] {
        guard let settings = configuration.transcoderSettings else {
            return [.ok("transcoder", "off: no previews, compositions, renditions or recordings")]
        }
        let trial = await drawCard(settings)
        return [
            judgeCodecs(CodecLibraries.videoDecoders),
            judge(
                hasDrawn: trial.hasDrawn, complaints: trial.complaints,
                mustBeConfined: settings.mustBeConfined),
        ]
    }

    /// A missing decoder is only a warning: forwarding needs none.
    /// - Parameter decoders: the video codecs of browsers, and whether the installed libraries decode each of them.
    static func judgeCodecs(_ decoders: [(name: String, isThere: Bool)]) -> Finding {
        let missing = decoders.filter { !$0.isThere }.map(\.name)
        guard missing.isEmpty else {
            return .warn(
                "codecs", "no decoder for \(missing.joined(separator: ", "))",
                remedy: "such streams have no previews or compositions; install Debian's libavcodec59")
        }
        return .ok("codecs", decoders.map(\.name).joined(separator: ", "))
    }

    /// - Parameters:
    ///   - hasDrawn: whether the process has delivered a picture.
    ///   - complaints: warnings that the supervisor logged meanwhile, such as missing confinement.
    ///   - mustBeConfined: whether the server refuses to run it unconfined.
    static func judge(hasDrawn: Bool, complaints: [String], mustBeConfined: Bool) -> Finding {
        let reason = complaints.isEmpty ? "" : " (\(complaints.joined(separator: "; ")))"
        switch (hasDrawn, complaints.isEmpty) {
        case (true, true): return .ok("transcoder", "starts, is confined, and draws")
        case (true, false):
            return .warn(
                "transcoder", "starts and draws, but is not fully confined\(reason)",
                remedy:
                    "a malicious picture could reach more than it should; use Linux 5.13 or later with Landlock"
            )
        case (false, _):
            let confinement =
                mustBeConfined
                ? "enable Landlock (Linux 5.13 or later) and seccomp, or set --transcoder off"
                : "set --transcoder off"
            return .fail("transcoder", "does not start, or does not draw\(reason)", remedy: confinement)
        }
    }

    /// Starts a transcoder process and lets it draw one card.
    ///
    /// A card needs no media, but it exercises the start of the process, its confinement and its drawing libraries.
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
        // A process that hangs must not hang the doctor.
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
