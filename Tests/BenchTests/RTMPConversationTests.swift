import Base
import Ingest
import Restream
import Testing
import Wire

@testable import sfu_bench

/// A publisher of the bench, and the server's half of RTMP at the other end of it.
@Suite struct `A publisher by RTMP` {
    private static let start = MonotonicTime(nanoseconds: 5_000_000_000)
    private static let format = RestreamFormat(
        width: 640, height: 360, framesPerSecond: 30,
        pictureHeader: [0, 0, 0, 1, 0x67, 0x42, 0xC0, 0x1F, 0xD9, 0, 0, 0, 1, 0x68, 0xCE, 0x3C, 0x80],
        soundConfiguration: [0x11, 0x90])

    private let meter = RTMPMeter()
    private let conversation: RTMPConversation
    private var server: RTMPSession
    private var isWelcome = true
    /// What the server was asked and told.
    private var keys: [String] = []
    private var pictures = 0
    private var serverEnd: IngestEnd?
    /// Bytes that the publisher gave out.
    private var bytes: UInt64 = 0

    init() throws {
        let destination = try RTMPDestination(parsing: "rtmp://127.0.0.1/live/talk?token=x")
        conversation = RTMPConversation(to: destination, meter, at: Self.start)
        server = RTMPSession(
            random: [UInt8](repeating: 7, count: RTMPHandshake.randomLength), at: Self.start)
    }

    private func time(_ milliseconds: Int64) -> MonotonicTime { Self.start + .milliseconds(milliseconds) }

    /// Hands everything to and fro until nobody says anything more.
    private mutating func talk(at milliseconds: Int64) {
        while true {
            let output = conversation.takeOutput(waiting: 0)
            guard !output.isEmpty else { return }
            bytes += UInt64(output.count)
            take(server.receive(output.span, at: time(milliseconds)), at: milliseconds)
        }
    }

    private mutating func take(_ effects: [RTMPSession.Effect], at milliseconds: Int64) {
        let now = time(milliseconds)
        for effect in effects {
            switch effect {
            case .send(let output): conversation.receive(output.span, at: now)
            case .publish(let key):
                keys.append(key.exposed)
                let answer = isWelcome ? server.accept(at: now) : server.end(because: .unknownStream)
                take(answer, at: milliseconds)
            case .video: pictures += 1
            case .finish(let end): serverEnd = end
            case .metadata, .audio: break
            }
        }
    }

    private func send(_ kind: RestreamSample.Kind, number: UInt64) {
        let now = time(2_000 + Int64(number) * 33)
        let bytes: [UInt8] = [0, 0, 0, 1, kind == .keyFrame ? 0x65 : 0x41]
        let sample = RestreamSample(
            kind: kind, number: number, time: now, bytes: bytes + [UInt8](repeating: 0x80, count: 20))
        conversation.perform(.media(.sample(sample)), at: now)
    }

    @Test mutating func `is live from the time that the server accepts its key`() {
        #expect(!conversation.isEstablished && conversation.deadline == time(15_000))
        talk(at: 1_000)
        #expect(conversation.isEstablished && !conversation.isOver && conversation.deadline == nil)
        #expect(keys == ["talk?token=x"] && meter.current.live == time(1_000))
        // It is live once.
        conversation.perform(.media(.format(Self.format)), at: time(2_000))
        send(.keyFrame, number: 1)
        talk(at: 3_000)
        let values = meter.current
        #expect(values.live == time(1_000) && values.bytes == bytes && values.failure == nil)
        // The configuration of the decoder, and the picture.
        #expect(pictures == 2)
    }

    @Test mutating func `leaves out pictures while much waits, up to the next key frame`() {
        talk(at: 1_000)
        conversation.perform(.media(.format(Self.format)), at: time(2_000))
        send(.keyFrame, number: 1)
        let first = conversation.takeOutput(waiting: 2 << 20)
        send(.picture, number: 2)
        #expect(!first.isEmpty && meter.current.dropped == 1)
        let none = conversation.takeOutput(waiting: 0)
        // The server reads again, but this picture refers to the one that it did not get.
        send(.picture, number: 3)
        #expect(none.isEmpty && meter.current.dropped == 2)
        send(.keyFrame, number: 4)
        let again = conversation.takeOutput(waiting: 0)
        #expect(!again.isEmpty && meter.current.dropped == 2)
    }

    @Test mutating func `says goodbye when the run is over, which is no failure`() {
        talk(at: 1_000)
        conversation.perform(.end, at: time(5_000))
        #expect(conversation.isOver && meter.current.failure == nil)
        talk(at: 5_000)
        #expect(serverEnd == .byPublisher)
    }

    @Test mutating func `fails where the server does not want its key`() {
        isWelcome = false
        talk(at: 1_000)
        #expect(conversation.isOver && meter.current.live == nil)
        #expect(meter.current.failure?.hasPrefix("The target refused the stream") == true)
    }

    @Test func `fails with the first reason where the server speaks something else`() {
        let page = Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
        conversation.receive(page.span, at: time(100))
        let failure = meter.current.failure
        #expect(conversation.isOver && failure?.hasPrefix("The target doesn't speak RTMP") == true)
        conversation.perform(.end, at: time(200))
        conversation.advance(to: time(20_000))
        #expect(meter.current.failure == failure)
    }

    @Test func `fails where the server says nothing for fifteen seconds`() {
        conversation.advance(to: time(14_999))
        #expect(!conversation.isOver && meter.current.failure == nil)
        conversation.advance(to: time(15_000))
        let expected = RestreamFailure.timedOut.text
        #expect(conversation.isOver && meter.current.failure == expected)
    }
}
