import Base
import Peer
import Testing
import Wire

@testable import ClientPeer

private let mediaSSRC: UInt32 = 0x1111
private let repairSSRC: UInt32 = 0x2222

/// The first packet of a VP8 picture that refers to others, and that of a key frame.
private let picture: [UInt8] = [0x90, 0x80, 0x80, 0x01, 0x11, 0, 0]
private let keyPicture: [UInt8] = [0x90, 0x80, 0x80, 0x02, 0x10, 0, 0]

private func time(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
}

/// A decrypted packet as the server sends it.
private func bytes(
    _ number: UInt16, _ payload: [UInt8] = picture, type: UInt8 = 96, ssrc: UInt32 = mediaSSRC,
    timestamp: UInt32 = 9_000, padding: UInt8 = 0
) -> [UInt8] {
    var packet: [UInt8] = [padding > 0 ? 0xA0 : 0x80, type]
    packet.append(bigEndian: number)
    packet.append(bigEndian: timestamp)
    packet.append(bigEndian: ssrc)
    packet += payload
    guard padding > 0 else { return packet }
    return packet + [UInt8](repeating: 0, count: Int(padding) - 1) + [padding]
}

/// RTX of a packet with this number.
private func repair(
    of number: UInt16, _ payload: [UInt8] = picture, as own: UInt16 = 500, type: UInt8 = 97,
    timestamp: UInt32 = 9_000
) -> [UInt8] {
    var wrapped: [UInt8] = []
    wrapped.append(bigEndian: number)
    return bytes(own, wrapped + payload, type: type, ssrc: repairSSRC, timestamp: timestamp)
}

private func line(_ kind: MediaKind, _ formats: [MediaFormat], _ remote: ClientPlan.RemoteSource?)
    -> ClientPlan.Line
{
    ClientPlan.Line(
        mid: "0", kind: kind, direction: .recvonly, formats: formats, extensions: ExtensionIDs(),
        encodings: [], remote: remote)
}

@Suite struct `A slot that a client receives` {
    private var track: ReceivingTrack

    init() throws {
        let formats = [
            MediaFormat(codec: .vp8, payloadType: 96, repairPayloadType: 97),
            MediaFormat(codec: .vp9(profile: 0), payloadType: 98, repairPayloadType: 99),
        ]
        let source = ClientPlan.RemoteSource(
            ssrc: mediaSSRC, repairSSRC: repairSSRC, cname: nil, msid: nil)
        track = try #require(ReceivingTrack(line: line(.video, formats, source)))
    }

    private mutating func receive(
        _ packet: [UInt8], at milliseconds: Int64 = 0
    ) throws(WireError) -> ReceivingTrack.Packet? {
        try track.receive(packet.span, at: time(milliseconds))
    }

    private mutating func feedback(at milliseconds: Int64, rtt: Duration? = nil) -> [RTCPPacket] {
        track.feedback(from: 9, rtt: rtt, at: time(milliseconds))
    }

    private func nack(_ lost: UInt16...) -> RTCPPacket {
        .nack(NegativeAcknowledgement(senderSSRC: 9, mediaSSRC: mediaSSRC, lost: lost))
    }

    private let demand = RTCPPacket.pictureLossIndication(
        PictureLossIndication(senderSSRC: 9, mediaSSRC: mediaSSRC))

    @Test func `is none where the server sends nothing`() {
        let none = ReceivingTrack(line: line(.video, [], nil)) == nil
        #expect(none)
    }

    @Test func `knows its two streams, or its only one`() {
        let alone = ClientPlan.RemoteSource(ssrc: mediaSSRC, repairSSRC: nil, cname: nil, msid: nil)
        let audio = ReceivingTrack(line: line(.audio, [], alone))
        let cases: [(UInt32, Bool, Bool)] = [
            (mediaSSRC, true, true), (repairSSRC, true, false), (0, false, false),
        ]
        for (ssrc, isBoth, isAlone) in cases {
            #expect(track.takes(ssrc: ssrc) == isBoth)
            #expect(audio?.takes(ssrc: ssrc) == isAlone)
        }
    }

    @Test mutating func `numbers packets beyond sixteen bits`() throws {
        var numbers: [Int64] = []
        for number in [65_534, 65_535, 0, 1] as [UInt16] {
            let got = try receive(bytes(number))
            numbers.append(try #require(got).sequenceNumber)
        }
        #expect(numbers == [65_534, 65_535, 65_536, 65_537])
    }

    @Test mutating func `gives a packet that was sent again its original form`() throws {
        _ = try receive(bytes(10))
        _ = try receive(bytes(12, timestamp: 15_000))
        let got = try receive(repair(of: 11, keyPicture, timestamp: 12_000))
        let repaired = try #require(got)
        #expect(repaired.isRepaired && repaired.sequenceNumber == 11 && repaired.codec == .vp8)
        #expect(repaired.header.ssrc == mediaSSRC && repaired.header.payloadType == 96)
        #expect(repaired.header.sequenceNumber == 11 && repaired.header.timestamp == 12_000)
        #expect(repaired.payload == keyPicture)
    }

    @Test mutating func `takes each packet once, however it comes`() throws {
        _ = try receive(bytes(10))
        let again = try receive(bytes(10))
        let repaired = try receive(repair(of: 10))
        #expect(again == nil && repaired == nil)
        _ = try receive(bytes(12))
        let first = try receive(repair(of: 11))
        let second = try receive(repair(of: 11, as: 501))
        let late = try receive(bytes(11))
        #expect(first?.isRepaired == true && second == nil && late == nil)
    }

    @Test mutating func `counts a late packet as repaired only if it was requested`() throws {
        _ = try receive(bytes(10))
        _ = try receive(bytes(12))
        let reordered = try receive(bytes(11))
        #expect(reordered?.isRepaired == false)
        _ = try receive(bytes(14))
        let requests = feedback(at: 0)
        #expect(requests == [nack(13)])
        let resent = try receive(bytes(13))
        #expect(resent?.isRepaired == true)
    }

    @Test mutating func `follows a change of the codec`() throws {
        let before = try receive(bytes(10))
        let after = try receive(bytes(12, [0x08, 1, 2], type: 98))
        let repaired = try receive(repair(of: 11, [0x08, 3, 4], type: 99))
        #expect(before?.codec == .vp8 && after?.codec == .vp9(profile: 0))
        #expect(repaired?.codec == .vp9(profile: 0) && repaired?.header.payloadType == 98)
    }

    @Test mutating func `ignores what was not negotiated, and does not count it`() throws {
        let unknown = try receive(bytes(10, type: 100))
        // A payload type of media on the stream of retransmissions, and the reverse.
        let swapped = try receive(repair(of: 11, type: 96))
        let reverse = try receive(bytes(12, type: 97))
        let probe = try receive(bytes(13, [], type: 97, ssrc: repairSSRC, padding: 200))
        #expect(unknown == nil && swapped == nil && reverse == nil && probe == nil)
        let block = track.reportBlock(at: time(0))
        #expect(block == nil && track.deadline == nil)
    }

    @Test func `refuses a retransmission without a whole number`() {
        let short = bytes(500, [0], type: 97, ssrc: repairSSRC)
        #expect(throws: WireError.truncated) {
            var copy = self.track
            _ = try copy.receive(short.span, at: time(0))
        }
    }

    @Test mutating func `delivers payloads without their padding`() throws {
        let padded = try receive(bytes(10, padding: 4))
        #expect(padded?.payload == picture)
        // A packet of padding alone still has its place among the others.
        let empty = try receive(bytes(11, [], padding: 30))
        #expect(empty?.payload == [] && empty?.sequenceNumber == 11)
        _ = try receive(bytes(12))
        let requests = feedback(at: 0)
        #expect(requests.isEmpty)
    }

    // MARK: Feedback

    @Test mutating func `requests what is missing again after a round trip`() throws {
        _ = try receive(bytes(10))
        _ = try receive(bytes(13))
        let first = feedback(at: 0, rtt: .milliseconds(40))
        #expect(first == [nack(11, 12)])
        #expect(track.deadline == time(40))
        _ = try receive(repair(of: 12), at: 20)
        let early = feedback(at: 39, rtt: .milliseconds(40))
        let second = feedback(at: 40, rtt: .milliseconds(40))
        #expect(early.isEmpty && second == [nack(11)])
    }

    @Test mutating func `requests a key frame, once, for what it gives up`() throws {
        _ = try receive(bytes(10))
        _ = try receive(bytes(12))
        _ = feedback(at: 0)
        let atEnd = feedback(at: 1_000)
        let later = feedback(at: 1_001)
        #expect(atEnd == [demand] && later.isEmpty && track.deadline == nil)
    }

    @Test mutating func `requests a key frame at once for a gap that is too large`() throws {
        _ = try receive(bytes(10))
        _ = try receive(bytes(411))
        let requests = feedback(at: 0)
        #expect(requests == [demand] && track.deadline == nil)
    }

    @Test mutating func `needs nothing before a key frame that has come`() throws {
        _ = try receive(bytes(10))
        _ = try receive(bytes(12))
        _ = try receive(bytes(13, keyPicture))
        let requests = feedback(at: 0)
        #expect(requests.isEmpty && track.deadline == nil)
        // What comes after it is needed as before.
        _ = try receive(bytes(15))
        let later = feedback(at: 0)
        #expect(later == [nack(14)])
    }

    @Test func `of sound never asks for a picture`() throws {
        let opus = MediaFormat(codec: .opus, payloadType: 111)
        let source = ClientPlan.RemoteSource(ssrc: mediaSSRC, repairSSRC: nil, cname: nil, msid: nil)
        var sound = try #require(ReceivingTrack(line: line(.audio, [opus], source)))
        for number in [10, 12] as [UInt16] {
            let packet = bytes(number, [0xFC, 0xFF, 0xFE], type: 111)
            _ = try sound.receive(packet.span, at: time(0))
        }
        let first = sound.feedback(from: 9, rtt: nil, at: time(0))
        let atEnd = sound.feedback(from: 9, rtt: nil, at: time(1_000))
        #expect(first == [nack(11)] && atEnd.isEmpty)
    }

    // MARK: Reports

    private func report(ssrc: UInt32 = mediaSSRC, ntp: UInt64, rtp: UInt32 = 5, packets: UInt32 = 1)
        -> SenderReport
    {
        SenderReport(ssrc: ssrc, ntpTime: ntp, rtpTimestamp: rtp, packetCount: packets, octetCount: 1)
    }

    @Test mutating func `believes the sender's clock only where that tells the time`() {
        let placeholder = report(ntp: 7, rtp: .max, packets: 0)
        for useless in [report(ssrc: repairSSRC, ntp: 7), report(ntp: 0), placeholder] {
            track.receive(useless, at: time(0))
        }
        #expect(track.lastReport == nil)
        let good = report(ntp: 0x1234_5678_9ABC_DEF0)
        track.receive(good, at: time(0))
        track.receive(report(ntp: 0), at: time(1))
        #expect(track.lastReport == good)
    }

    @Test mutating func `reports what is still missing, and since when it has known the clock`() throws {
        _ = try receive(bytes(10))
        _ = try receive(bytes(12))
        track.receive(report(ntp: 0x1234_5678_9ABC_DEF0), at: time(1_000))
        let first = track.reportBlock(at: time(2_000))
        #expect(first?.ssrc == mediaSSRC && first?.highestSequenceNumber == 12)
        // One of three packets, in parts of 256.
        #expect(first?.cumulativeLost == 1 && first?.fractionLost == 85)
        #expect(first?.lastSenderReport == 0x5678_9ABC && first?.delaySinceLastSenderReport == 65_536)
        _ = try receive(repair(of: 11))
        let second = track.reportBlock(at: time(3_000))
        #expect(second?.cumulativeLost == 0 && second?.fractionLost == 0)
    }
}
