import Base
import Peer
import TestSupport
import Testing
import Wire

@Suite final class `A key-frame requester` {
    var requester = KeyFrameRequester(pictureLossIndication: true, fullIntraRequest: true)

    func request(at milliseconds: Int64, rtt: Duration? = .milliseconds(50)) -> KeyFrameRequester.Request? {
        requester.requestDue(at: at(milliseconds), rtt: rtt)
    }

    /// Times at which requests leave, if nothing else happens.
    func requests(from start: Int64, to end: Int64, rtt: Duration? = .milliseconds(50)) -> [Int64] {
        (start...end).filter { request(at: $0, rtt: rtt) != nil }
    }

    @Test func `asks at once when the first viewer does`() {
        #expect(requester.deadline == nil)
        requester.demand(.beginning, at: at(10))
        #expect(requester.deadline == at(10))
        #expect(request(at: 9) == nil)
        #expect(request(at: 10) == .pictureLossIndication)
        #expect(request(at: 10) == nil)
    }

    @Test func `knows whether it would ask at once`() {
        #expect(requester.asksAtOnce(for: .beginning, at: at(0)))
        requester.demand(.beginning, at: at(0))
        #expect(request(at: 0) != nil)
        // It is on its way, until that has taken too long.
        #expect(requester.asksAtOnce(for: .beginning, at: at(100)))
        #expect(request(at: 1_000) != nil)
        #expect(!requester.asksAtOnce(for: .beginning, at: at(1_001)))
        requester.keyFrameArrived(at: at(1_100))
        #expect(!requester.asksAtOnce(for: .beginning, at: at(1_900)))
        #expect(requester.asksAtOnce(for: .beginning, at: at(2_000)))
        // Of a costly one: 40 kB of 2.5 Mbit/s.
        requester.measured(40_000, ofBitrate: 2_500_000)
        #expect(!requester.asksAtOnce(for: .beginning, at: at(2_900)))
        #expect(requester.asksAtOnce(for: .beginning, at: at(3_000)))
        #expect(!requester.asksAtOnce(for: .repetition, at: at(3_000)))
        #expect(requester.deadline == nil, "it was only asked whether it would")
        let mute = KeyFrameRequester(pictureLossIndication: false, fullIntraRequest: false)
        #expect(!mute.asksAtOnce(for: .beginning, at: at(0)))
    }

    @Test func `asks once for a thousand viewers`() {
        for time in Int64(0)..<1_000 {
            requester.demand(.beginning, at: at(time))
            _ = request(at: time)
            if time == 120 { requester.keyFrameArrived(at: at(time)) }
        }
        #expect(requester.demandCount == 1_000)
        #expect(requester.requestCount == 1)
    }

    @Test func `asks less and less often while demands never end, however fast key frames come`() {
        var asked: [Int64] = []
        for time in Int64(0)...10_000 {
            requester.demand(.beginning, at: at(time))
            if request(at: time) != nil { asked.append(time) }
            if time % 100 == 50 { requester.keyFrameArrived(at: at(time)) }
        }
        #expect(asked == [0, 1_000, 2_250, 3_813, 5_767, 7_767, 9_767])
    }

    @Test func `asks at once again when demands have become rare`() {
        for time in Int64(0)...5_000 {
            requester.demand(.beginning, at: at(time))
            _ = request(at: time)
            if time % 100 == 50 { requester.keyFrameArrived(at: at(time)) }
        }
        requester.keyFrameArrived(at: at(5_001))
        var asked: [Int64] = []
        for time in stride(from: Int64(8_000), to: 20_000, by: 1_100) {
            requester.demand(.beginning, at: at(time))
            if request(at: time) != nil { asked.append(time) }
            requester.keyFrameArrived(at: at(time + 50))
        }
        #expect(asked == Array(stride(from: 8_000, to: 20_000, by: 1_100)))
    }

    @Test func `forgets a waiting demand when a key frame comes`() {
        requester.demand(.beginning, at: at(0))
        _ = request(at: 0)
        requester.keyFrameArrived(at: at(100))
        requester.demand(.beginning, at: at(200))
        #expect(requester.deadline == at(1_000))
        requester.keyFrameArrived(at: at(900))
        #expect(requester.deadline == nil)
        #expect(request(at: 1_000) == nil)
        #expect(requester.keyFrameCount == 2)
    }

    @Test func `keeps its demand when a key frame comes that packets are lost behind`() {
        requester.demand(.loss, at: at(0))
        #expect(request(at: 0) != nil)
        requester.keyFrameArrived(precedesLoss: true, at: at(20))
        #expect(requester.deadline == at(1_000))
        #expect(requester.keyFrameCount == 1)
        #expect(request(at: 1_000) != nil)
        #expect(requester.occasion == .init(reason: .loss, attempt: 2, age: .milliseconds(980)))
        requester.keyFrameArrived(at: at(1_050))
        #expect(requester.deadline == nil)
    }

    @Test func `repeats an unanswered request, less and less often`() {
        requester.demand(.beginning, at: at(0))
        #expect(requests(from: 0, to: 25_000) == [0, 1_000, 2_000, 4_000, 8_000, 16_000, 24_000])
    }

    @Test func `waits two round trips if they are long`() {
        requester.demand(.beginning, at: at(0))
        #expect(requests(from: 0, to: 10_000, rtt: .milliseconds(1_500)) == [0, 3_000, 9_000])
    }

    @Test func `begins with short waits again after a key frame`() {
        requester.demand(.beginning, at: at(0))
        _ = requests(from: 0, to: 10_000)
        requester.keyFrameArrived(at: at(10_000))
        requester.demand(.beginning, at: at(10_500))
        #expect(requests(from: 10_500, to: 13_000) == [10_500, 11_500, 12_500])
    }

    @Test func `stops when nobody waits any longer`() {
        requester.demand(.beginning, at: at(0))
        _ = request(at: 0)
        requester.cancel()
        #expect(requester.deadline == nil)
        #expect(requests(from: 0, to: 5_000) == [])
        requester.demand(.beginning, at: at(5_001))
        #expect(request(at: 5_001) != nil)
    }

    @Test func `uses FIR where there is no PLI, with one number for each wish`() {
        requester = KeyFrameRequester(pictureLossIndication: false, fullIntraRequest: true)
        requester.demand(.beginning, at: at(0))
        #expect(request(at: 0) == .fullIntraRequest(sequenceNumber: 1))
        #expect(request(at: 1_000) == .fullIntraRequest(sequenceNumber: 1))
        requester.keyFrameArrived(at: at(1_100))
        requester.demand(.beginning, at: at(5_000))
        #expect(request(at: 5_000) == .fullIntraRequest(sequenceNumber: 2))
    }

    @Test func `asks for nothing that was not negotiated`() {
        requester = KeyFrameRequester(pictureLossIndication: false, fullIntraRequest: false)
        requester.demand(.beginning, at: at(0))
        #expect(requester.deadline == nil)
        #expect(request(at: 10_000) == nil)
        #expect(requester.demandCount == 1)
        #expect(requester.requestCount == 0)
    }

    /// Demands without end, each answered 50 ms later.
    private func requestsUnderDemand(for duration: Int64, _ reason: KeyFrameRequester.Reason = .beginning)
        -> [Int64]
    {
        var asked: [Int64] = []
        for time in Int64(0)...duration {
            requester.demand(reason, at: at(time))
            if request(at: time) != nil { asked.append(time) }
            if time - (asked.last ?? -1_000) == 50 { requester.keyFrameArrived(at: at(time)) }
        }
        return asked
    }

    @Test func `lets viewers cost no more than two percent of the bitrate`() {
        // 9,375 bytes are 5 percent of a second at 1.5 Mbit/s.
        requester.measured(9_375, ofBitrate: 1_500_000)
        let asked = requestsUnderDemand(for: 20_000, .repetition)
        for (earlier, later) in zip(asked, asked.dropFirst()) { #expect(later - earlier >= 2_500) }
        #expect(asked.count == 9)
    }

    @Test func `lets no viewer wait for long, whatever a key frame costs`() {
        requester.measured(.max, ofBitrate: 0)
        #expect(requestsUnderDemand(for: 6_500) == [0, 2_000, 4_000, 6_000])
        requester.measured(-5, ofBitrate: .max)
        requester.measured(0, ofBitrate: -1)
    }

    @Test func `lets viewers who have the latest one wait for as long as it cost, and that is bounded, too`()
    {
        // A fifth of a second at 1.5 Mbit/s.
        requester.measured(37_500, ofBitrate: 1_500_000)
        #expect(requestsUnderDemand(for: 35_000, .repetition) == [0, 10_000, 20_000, 30_000])
        requester = KeyFrameRequester(pictureLossIndication: true, fullIntraRequest: true)
        requester.measured(.max, ofBitrate: 0)
        #expect(requestsUnderDemand(for: 45_000, .repetition) == [0, 20_000, 40_000])
    }

    @Test func `the most urgent demand decides when to ask`() {
        requester.measured(37_500, ofBitrate: 1_500_000)
        requester.demand(.repetition, at: at(0))
        #expect(request(at: 0) != nil)
        requester.keyFrameArrived(at: at(50))
        requester.demand(.repetition, at: at(100))
        #expect(requester.deadline == at(10_000))
        requester.demand(.beginning, at: at(200))
        requester.demand(.repetition, at: at(300))
        #expect(requester.deadline == at(2_000))
        requester.demand(.loss, at: at(400))
        #expect(requester.deadline == at(1_000))
    }

    @Test func `does not count the cost where everybody waits`() {
        requester.measured(100_000, ofBitrate: 1_500_000)
        #expect(requestsUnderDemand(for: 4_000, .loss) == [0, 1_000, 2_250, 3_813])
        requester.keyFrameArrived(at: at(4_001))
        requester.demand(.beginning, at: at(4_100))
        #expect(requester.deadline == at(5_813))
        requester.demand(.loss, at: at(4_200))
        #expect(requester.deadline.map { $0 < at(6_000) } == true)
    }

    @Test func `repeats an unanswered request without regard to cost`() {
        requester.measured(100_000, ofBitrate: 1_500_000)
        requester.demand(.beginning, at: at(0))
        #expect(requests(from: 0, to: 3_000) == [0, 1_000, 2_000])
    }

    @Test func `asks once for a key frame that nobody waits for, however long it takes`() {
        requester.demand(.renewal, at: at(0))
        #expect(requests(from: 0, to: 9_999) == [0])
        #expect(requester.deadline == nil)
        // Who still wants it says so again.
        requester.demand(.renewal, at: at(10_000))
        #expect(requests(from: 10_000, to: 20_000) == [10_000])
    }

    @Test func `lets what nobody waits for cost no more than two percent of the bitrate`() {
        // A fifth of a second at 1.5 Mbit/s.
        requester.measured(37_500, ofBitrate: 1_500_000)
        #expect(requestsUnderDemand(for: 25_000, .renewal) == [0, 10_000, 20_000])
    }

    @Test func `asks again for a viewer who comes while nobody waited for the answer`() {
        requester.demand(.renewal, at: at(0))
        #expect(requests(from: 0, to: 400) == [0])
        requester.demand(.beginning, at: at(401))
        #expect(requests(from: 401, to: 3_000) == [1_000, 2_000])
    }

    @Test func `says why it asked, how often, and how old the latest key frame is`() {
        requester.demand(.beginning, at: at(0))
        _ = request(at: 0)
        #expect(requester.occasion == .init(reason: .beginning, attempt: 1, age: nil))
        requester.demand(.loss, at: at(900))
        _ = request(at: 1_000)
        #expect(requester.occasion == .init(reason: .loss, attempt: 2, age: nil))
        requester.keyFrameArrived(at: at(1_100))
        requester.demand(.renewal, at: at(11_000))
        _ = request(at: 11_000)
        #expect(requester.occasion == .init(reason: .renewal, attempt: 1, age: .milliseconds(9_900)))
    }

    @Test func `a request becomes a PLI or a FIR packet`() {
        #expect(
            KeyFrameRequester.Request.pictureLossIndication.packet(senderSSRC: 1, mediaSSRC: 2)
                == .pictureLossIndication(PictureLossIndication(senderSSRC: 1, mediaSSRC: 2)))
        #expect(
            KeyFrameRequester.Request.fullIntraRequest(sequenceNumber: 9).packet(senderSSRC: 1, mediaSSRC: 2)
                == .fullIntraRequest(
                    FullIntraRequest(senderSSRC: 1, entries: [.init(ssrc: 2, sequenceNumber: 9)])))
    }

    @Test(arguments: 0..<20) func `keeps its limits whatever happens`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var now: Int64 = 0
        var asked: [Int64] = []
        var isOwed = false
        for _ in 0..<2_000 {
            now += Int64.random(in: 0...400, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                requester.demand(.beginning, at: at(now))
                isOwed = true
            case 5:
                requester.keyFrameArrived(at: at(now))
                isOwed = false
            default: break
            }
            #expect((requester.deadline != nil) == isOwed)
            let rtt =
                Duration.seconds(Int64.random(in: -1...3, using: &random))
                * (Bool.random(using: &random) ? 1 : 1 << 60)
            if let deadline = requester.deadline, deadline <= at(now) {
                #expect(request(at: now, rtt: rtt) != nil)
                asked.append(now)
            } else {
                #expect(request(at: now, rtt: rtt) == nil)
            }
        }
        for (earlier, later) in zip(asked, asked.dropFirst()) { #expect(later - earlier >= 1_000) }
        #expect(requester.requestCount == UInt64(asked.count))
    }
}
