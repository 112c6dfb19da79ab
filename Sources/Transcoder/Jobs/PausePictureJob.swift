import Base
import CLinux
import Codecs
import Dispatch
import Synchronization
import Wire

/// What a pause picture is made of.
package struct PausePictureRequest: Equatable, Sendable {
    /// What is held liable if the file kills the process.
    package var source: SourceKey
    /// A JPEG, WebP or PNG file.
    package var file: [UInt8]
    /// A last frame is blurred; what the host chose is not.
    package var isBlurred: Bool
    /// Makes the packets of two lives of the process different streams.
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

    /// - Throws: for what `bytes` does not make.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var reader = MessageReader(bytes)
        source = SourceKey(number: try reader.uint64())
        isBlurred = try reader.bool()
        seed = try reader.uint64()
        file = try reader.array()
    }
}

/// Sends one picture as video: a key frame, then next to nothing, until its end.
///
/// Any command asks for a key frame.
final class PausePictureJob: TranscoderJob {
    private let line: PausePictureLine

    init?(_ body: [UInt8], _ environment: JobEnvironment) {
        guard let request = try? PausePictureRequest(body) else { return nil }
        line = PausePictureLine(request, environment)
    }

    func command(_ body: [UInt8]) { line.demandKeyFrame() }
    func end() { line.end() }
}

/// Makes the packets, on a queue of its own.
private final class PausePictureLine: Sendable {
    /// Between two frames.
    private static let interval = DispatchTimeInterval.seconds(2)
    /// Wide enough for a blurred picture, and small enough for its key frame to be a few packets.
    private static let longestSide = 640
    private static let bitrate = 60_000
    /// CPU time that a file may take.
    private static let stillLimit = Duration.seconds(2)

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

    private func run() {
        guard sendFrame() else { return }
        queue.asyncAfter(deadline: .now() + Self.interval) { [weak self] in self?.run() }
    }

    /// - Returns: whether there will be further ones.
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

    /// In even sizes, which every decoder shows whole.
    private static func draw(_ request: PausePictureRequest) throws(CodecError) -> Picture {
        let file = try Picture(stillFile: request.file)
        let scale = min(Double(longestSide) / Double(max(file.width, file.height)), 1)
        let picture = try file.scaled(
            width: max(Int(Double(file.width) * scale) & ~1, 16),
            height: max(Int(Double(file.height) * scale) & ~1, 16))
        return request.isBlurred ? try picture.blurred() : picture
    }
}
