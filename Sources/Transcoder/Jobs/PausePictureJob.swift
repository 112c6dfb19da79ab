import Base
import CLinux
import Codecs
import Dispatch
import Synchronization
import Wire

/// The still of a pause picture, and how to show it.
package struct PausePictureRequest: Equatable, Sendable {
    /// Blamed if decoding the file crashes the process.
    package var source: SourceKey
    /// A JPEG, WebP or PNG file.
    package var file: [UInt8]
    /// Set for the last frame of a camera, and not for a picture that the host chose.
    package var isBlurred: Bool
    /// Distinguishes the streams of two lives of the process.
    package var seed: UInt64

    package init(source: SourceKey, file: [UInt8], isBlurred: Bool, seed: UInt64) {
        self.source = source
        self.file = file
        self.isBlurred = isBlurred
        self.seed = seed
    }

    /// The job's body.
    package var bytes: [UInt8] {
        var writer = MessageWriter()
        writer.write(source.number)
        writer.write(isBlurred)
        writer.write(seed)
        writer.write(file)
        return writer.bytes
    }

    /// - Throws: for a body that `bytes` cannot produce.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var reader = MessageReader(bytes)
        source = SourceKey(number: try reader.uint64())
        isBlurred = try reader.bool()
        seed = try reader.uint64()
        file = try reader.array()
    }
}

/// Sends one still as video: a key frame, then very small frames, until the job ends.
///
/// Any command requests a key frame.
final class PausePictureJob: TranscoderJob {
    private let line: PausePictureLine

    init?(_ body: [UInt8], _ environment: JobEnvironment) {
        guard let request = try? PausePictureRequest(body) else { return nil }
        line = PausePictureLine(request, environment)
    }

    func command(_ body: [UInt8]) { line.demandKeyFrame() }
    func end() { line.end() }
}

/// Decodes the still and encodes the frames, on its own queue.
private final class PausePictureLine: Sendable {
    /// Distance of two frames.
    private static let interval = DispatchTimeInterval.seconds(2)
    /// In pixels: large enough for a blurred picture, and small enough for a key frame of a few packets.
    private static let longestSide = 640
    /// In bits per second.
    private static let bitrate = 60_000
    /// CPU time within which a file has to be decoded.
    private static let stillLimit = Duration.seconds(2)

    /// The state that the lock protects; decoder and encoder are opened on first use.
    private struct Work {
        let request: PausePictureRequest
        var picture: Picture?
        var encoder: VP8Encoder?
        var packets: PacketMaker
        var isKeyFrameDue = true
        var isOver = false
    }

    private let queue = DispatchQueue(label: "pause picture", qos: .utility)
    private let environment: JobEnvironment
    private let work: Mutex<Work>

    init(_ request: PausePictureRequest, _ environment: JobEnvironment) {
        self.environment = environment
        work = Mutex(Work(request: request, packets: PacketMaker(seed: request.seed, kind: .video)))
        queue.async { [weak self] in self?.run() }
    }

    func demandKeyFrame() {
        queue.async { [weak self] in
            self?.work.withLock { $0.isKeyFrameDue = true }
            self?.sendFrame()
        }
    }

    func end() {
        work.withLock { $0.isOver = true }
    }

    /// Sends a frame, and schedules the next.
    private func run() {
        guard sendFrame() else { return }
        queue.asyncAfter(deadline: .now() + Self.interval) { [weak self] in self?.run() }
    }

    /// Sends a frame; a failure ends the job.
    /// - Returns: whether further frames follow.
    @discardableResult
    private func sendFrame() -> Bool {
        work.withLock { work in
            guard !work.isOver else { return false }
            do {
                let reports = try Self.frame(&work, environment)
                environment.outlet.send(reports)
                return true
            } catch {
                work.isOver = true
                environment.outlet.log(.warning, "pause-picture.failed", "\(error)")
                environment.outlet.send(.ended(environment.id))
                return false
            }
        }
    }

    /// Encodes the next frame, and creates its packets.
    private static func frame(
        _ work: inout Work, _ environment: JobEnvironment
    ) throws -> [TranscoderReport] {
        let picture: Picture
        if let known = work.picture {
            picture = known
        } else {
            let request = work.request
            picture = try environment.register.whileDecoding(request.source, within: stillLimit) {
                try draw(request)
            }
            work.picture = picture
        }
        let encoder: VP8Encoder
        if let known = work.encoder {
            encoder = known
        } else {
            encoder = try VP8Encoder(
                .init(width: picture.width, height: picture.height, framesPerSecond: 1, bitrate: bitrate))
            work.encoder = encoder
        }
        let now = MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds())
        // 90 kHz from the monotonic clock.
        let ticks = now.nanoseconds / 1_000 * 9 / 100
        guard
            let frame = try encoder.encode(picture, timestamp: ticks, isKeyFrame: work.isKeyFrameDue)
        else { return [] }
        work.isKeyFrameDue = false
        let timestamp = UInt32(truncatingIfNeeded: ticks)
        return work.packets.vp8(frame.bytes, timestamp: timestamp).map { bytes in
            .packet(environment.id, OutputPacket(source: 0, layer: 0, captured: now, bytes: bytes))
        }
    }

    /// Decodes the still and scales it to even sides, which every decoder shows whole.
    private static func draw(_ request: PausePictureRequest) throws(CodecError) -> Picture {
        let file = try Picture(stillFile: request.file)
        let scale = min(Double(longestSide) / Double(max(file.width, file.height)), 1)
        let picture = try file.scaled(
            width: max(Int(Double(file.width) * scale) & ~1, 16),
            height: max(Int(Double(file.height) * scale) & ~1, 16))
        return request.isBlurred ? try picture.blurred() : picture
    }
}
