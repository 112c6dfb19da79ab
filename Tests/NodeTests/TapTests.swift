import Base
import Peer
import TestSupport
import Testing
import Transcoder
import Wire

@testable import Forwarding
@testable import Node

/// A packet as a tap gives it, with its bytes.
private struct Sample {
    let packet: TappedPacket
    let bytes: [UInt8]

    /// - Parameter orientation: nil for a packet without the extension.
    init(
        _ number: UInt16, _ payload: [UInt8], orientation: UInt8? = nil, codec: MediaCodec = .vp8,
        epoch: UInt32 = 3
    ) throws {
        var bytes: [UInt8] = [orientation == nil ? 0x80 : 0x90, 96]
        bytes.append(bigEndian: number)
        bytes.append(bigEndian: UInt32(1))
        bytes.append(bigEndian: UInt32(2))
        // One extension of one byte (RFC 8285 §4.2), padded to a word.
        if let orientation { bytes += [0xBE, 0xDE, 0, 1, 4 << 4, orientation, 0, 0] }
        bytes += payload
        let header = try RTPHeader(parsing: bytes.span)
        var ids = ExtensionIDs()
        ids.videoOrientation = 4
        var media = MediaPacket(
            header: header, codec: codec, passedOn: PassedExtensions(of: header, in: bytes.span, ids: ids))
        media.sequenceNumber = Int64(number)
        packet = TappedPacket(ForwardedPacket(media, at: .zero), bytes.span, epoch: epoch)
        self.bytes = bytes
    }
}

@Suite struct `A captured key frame` {
    private let found = Watched<[KeyFrameCapture.Frame?]>([])
    private let capture: KeyFrameCapture

    init() {
        capture = KeyFrameCapture { [found] frame in found.change { $0.append(frame) } }
    }

    private func take(_ sample: Sample) { capture.take(sample.packet, sample.bytes.span) }

    /// What was passed on; nil for nothing.
    private func finish() throws -> KeyFrameCapture.Frame? {
        capture.finish()
        let frames = found.value
        try #require(frames.count == 1)
        return frames[0]
    }

    @Test func `is all packets in order, known by the first one`() throws {
        for number in UInt16(7)...9 { take(try Sample(number, [UInt8(number), 1])) }
        #expect(found.value.isEmpty)
        let frame = try #require(try finish())
        #expect(frame.payloads == [[7, 1], [8, 1], [9, 1]])
        #expect(frame.codec == .vp8)
        #expect(frame.mark == TapMark(epoch: 3, sequenceNumber: 7))
        #expect(frame.orientation == 0)
    }

    /// Senders that save bytes write it into the last packet alone; all others repeat it.
    @Test(arguments: [[nil, nil, 2], [2, 2, 2], [1, nil, 2], [2, nil, nil]] as [[UInt8?]])
    func `a key frame has the orientation of the latest packet that names one`(
        _ orientations: [UInt8?]
    ) throws {
        for (index, orientation) in orientations.enumerated() {
            take(try Sample(UInt16(index), [9], orientation: orientation))
        }
        let frame = try #require(try finish())
        #expect(frame.orientation == 2)
        #expect(frame.payloads == [[9], [9], [9]])
    }

    @Test func `is nothing where no packet came`() throws {
        let frame = try finish()
        #expect(frame == nil)
    }

    @Test func `packets of sound make no key frame`() throws {
        take(try Sample(1, [1], codec: .opus))
        let frame = try finish()
        #expect(frame == nil)
    }

    @Test func `is dropped as a whole where it is too large`() throws {
        let part = [UInt8](repeating: 0, count: 16 << 10)
        for number in UInt16(0)..<128 { take(try Sample(number, part)) }
        take(try Sample(128, [1]))
        // What still comes is not a frame of its own.
        take(try Sample(129, [1]))
        let frame = try finish()
        #expect(frame == nil)
    }

    @Test func `may have two megabytes`() throws {
        let part = [UInt8](repeating: 0, count: 16 << 10)
        for number in UInt16(0)..<128 { take(try Sample(number, part)) }
        let frame = try #require(try finish())
        #expect(frame.payloads.count == 128)
    }

    @Test func `leaves out a packet whose payload is not in its bytes`() throws {
        let whole = try Sample(1, [1, 2, 3])
        let cut = Array(whole.bytes.dropLast(2))
        capture.take(whole.packet, cut.span)
        take(try Sample(2, [4]))
        let frame = try #require(try finish())
        #expect(frame.payloads == [[4]])
        #expect(frame.mark == TapMark(epoch: 3, sequenceNumber: 2))
    }
}

/// Sources that are tapped at their worker, or where the publisher's own pictures are.
@Suite struct `Taps on publishers` {
    private static let input = InputID(number: 5)

    private let posted = Watched<[String]>([])
    private let openings = Watched<[TapOpening]>([])
    private let ended = Watched<[TapID]>([])
    /// Whether workers accept commands.
    private let isTaken = Watched(true)
    private let session: SessionID
    private let picture: ProgrammeSource
    private let sound: ProgrammeSource
    private let originals = OriginalPictures()
    private let transcoder: TranscoderSupervisor
    private let workers: WorkerTaps

    init() throws {
        session = try #require(SessionID(String(repeating: "1", count: 32)))
        picture = ProgrammeSource(session: session, mid: "v", worker: 2)
        sound = ProgrammeSource(session: session, mid: "a", worker: 2)
        var settings = TranscoderSettings()
        settings.executable = "/nonexistent"
        transcoder = TranscoderSupervisor(settings, log: .silent)
        let (posted, openings, isTaken) = (posted, openings, isTaken)
        workers = WorkerTaps(
            transcoder: transcoder, numbers: TapNumbers(),
            post: { worker, command in
                switch command {
                case .openTap(let opening):
                    openings.change { $0.append(opening) }
                    posted.change { $0.append("open \(opening.id.number) on \(worker)") }
                case .closeTap(let tap): posted.change { $0.append("close \(tap.number) on \(worker)") }
                case .demandKeyFrame(let tap): posted.change { $0.append("ask \(tap.number) on \(worker)") }
                default: posted.change { $0.append("else") }
                }
                return isTaken.value
            })
    }

    private var taps: OriginalTaps { OriginalTaps(originals: originals, viewers: workers) }

    private func open(_ source: ProgrammeSource) -> TapID? {
        taps.open(source, into: Self.input) { [ended] tap in ended.change { $0.append(tap) } }
    }

    @Test func `are opened, asked and closed at the worker that has the track`() throws {
        let tap = try #require(open(picture))
        let other = try #require(open(sound))
        taps.demandKeyFrame(tap, of: picture)
        taps.close(other, of: sound)
        #expect(posted.value == ["open 1 on 2", "open 2 on 2", "ask 1 on 2", "close 2 on 2"])
        #expect([tap.number, other.number] == [1, 2])
        let opening = try #require(openings.value.first)
        #expect(opening.mode == .whole && !opening.isAlongside && opening.maximumHeight == nil)
        transcoder.stop()
    }

    @Test func `end with their sinks, each for itself`() throws {
        let tap = try #require(open(picture))
        let other = try #require(open(sound))
        let sinks = openings.value.map(\.sink)
        sinks[1].finish()
        #expect(ended.value == [other])
        sinks[0].finish()
        #expect(ended.value == [other, tap])
        transcoder.stop()
    }

    @Test func `are not open where the worker accepts nothing, and have new numbers later`() throws {
        isTaken.change { $0 = false }
        let refused = open(picture)
        #expect(refused == nil)
        isTaken.change { $0 = true }
        let tap = try #require(open(picture))
        #expect(tap.number == 2)
        transcoder.stop()
    }

    @Test func `need a session or a track`() {
        let nobody = ProgrammeSource(session: nil, mid: "v", worker: 2)
        let tap = open(nobody)
        #expect(tap == nil)
        #expect(posted.value.isEmpty)
        transcoder.stop()
    }

    @Test func `a tap alongside others asks no publisher for key frames`() throws {
        let tap = workers.alongside.open(picture, into: Self.input) { _ in }
        #expect(tap != nil)
        #expect(openings.value.map(\.isAlongside) == [true])
        // The others are as before.
        _ = open(picture)
        #expect(openings.value.map(\.isAlongside) == [true, false])
        transcoder.stop()
    }

    @Test func `take a publisher's own pictures where there are some, its sound from the worker`() throws {
        let original = originals.begin(session, .hevc, by: transcoder)
        let tap = try #require(open(picture))
        #expect(original.has(tap))
        // An encoder by RTMP or SRT cannot be asked.
        taps.demandKeyFrame(tap, of: picture)
        #expect(posted.value.isEmpty)
        let other = try #require(open(sound))
        #expect(posted.value == ["open 2 on 2"])
        taps.close(tap, of: picture)
        #expect(!original.has(tap))
        taps.close(other, of: sound)
        #expect(posted.value == ["open 2 on 2", "close 2 on 2"])
        #expect(ended.value == [tap])
        transcoder.stop()
    }

    /// A tap that began before there were own pictures remains where it is.
    @Test func `are closed and asked where they were opened`() throws {
        let early = try #require(open(picture))
        let original = originals.begin(session, .hevc, by: transcoder)
        let late = try #require(open(picture))
        #expect(original.has(late) && !original.has(early))
        taps.demandKeyFrame(early, of: picture)
        taps.demandKeyFrame(late, of: picture)
        taps.close(early, of: picture)
        #expect(posted.value == ["open 1 on 2", "ask 1 on 2", "close 1 on 2"])
        #expect(original.has(late))
        #expect(ended.value.isEmpty)
        transcoder.stop()
    }

    @Test func `a tap takes what viewers get once the publisher's own pictures have ended`() throws {
        let original = originals.begin(session, .hevc, by: transcoder)
        let tap = try #require(open(picture))
        original.end()
        #expect(ended.value == [tap])
        let next = try #require(open(picture))
        #expect(posted.value == ["open \(next.number) on 2"])
        transcoder.stop()
    }
}
