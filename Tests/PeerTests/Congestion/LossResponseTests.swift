import Base
import Peer
import Testing

@Suite struct `A response to loss` {
    private var response = LossResponse()
    private var now: Int64 = 0

    /// A second of 100 packets.
    private mutating func report(_ lost: Int, hasBurst: Bool = false) {
        now += 1_000
        response.receive(.init(expected: 100, lost: lost, hasBurst: hasBurst), at: at(now))
    }

    private mutating func advance(_ milliseconds: Int64, isWaiting: Bool = false) {
        now += milliseconds
        response.advance(to: at(now), isWaiting: isWaiting)
    }

    @Test mutating func `leaves all as it is while little is lost`() {
        for lost in [0, 5, 10, 0, 10] { report(lost) }
        #expect(response.mayReplay && response.sendsPictures && response.repairShare == 100)
        #expect(response.deadline == nil)
    }

    @Test mutating func `one report of heavy loss changes nothing`() {
        report(60)
        #expect(response.mayReplay && response.repairShare == 100)
        report(0)
        report(60)
        #expect(response.mayReplay && response.sendsPictures)
    }

    @Test mutating func `repeats nothing of the past, and little else, while much is lost`() {
        report(20)
        report(20)
        #expect(!response.mayReplay && response.sendsPictures)
        #expect(response.repairShare == 12)
        report(30)
        #expect(response.repairShare == 5)
        report(10)
        #expect(response.mayReplay && response.repairShare == 100)
    }

    @Test mutating func `excessive loss is given only where a lower rate can mend it`() {
        for lost in [15, 40, 15, 15] {
            report(lost)
            #expect(response.excessiveLoss == nil)
        }
        report(16)
        #expect(response.excessiveLoss == nil)
        report(40)
        #expect(response.excessiveLoss == 40)
        report(15)
        #expect(response.excessiveLoss == nil)
    }

    @Test mutating func `does not blame a link for the burst of a beginning`() {
        for _ in 0..<4 { report(50, hasBurst: true) }
        #expect(response.mayReplay && response.sendsPictures)
        report(20)
        report(20)
        report(0, hasBurst: true)
        #expect(response.mayReplay)
    }

    @Test mutating func `stops pictures when more is lost than can be repaired, and that lasts`() {
        report(70)
        #expect(response.sendsPictures)
        report(70)
        #expect(!response.sendsPictures && !response.mayReplay)
        #expect(response.repairShare == 1)
        #expect(response.deadline == at(2_000) + LossResponse.Limits().minimumHold)
    }

    @Test mutating func `reports that come together count as one`() {
        report(70)
        for _ in 0..<3 {
            now += 200
            response.receive(.init(expected: 100, lost: 70), at: at(now))
        }
        #expect(response.mayReplay && response.sendsPictures)
    }

    @Test mutating func `concludes nothing from few packets`() {
        for second in 1...3 {
            response.receive(.init(expected: 9, lost: 9), at: at(Int64(second) * 1_000))
        }
        #expect(response.mayReplay && response.sendsPictures)
    }

    @Test mutating func `tries pictures again after a while, and later when that fails`() {
        report(70)
        report(70)
        for _ in 0..<4 { report(0) }
        advance(999)
        #expect(!response.sendsPictures)
        advance(1)
        #expect(response.sendsPictures && !response.mayReplay && !response.hasFailed)
        advance(500)
        report(70)
        #expect(!response.sendsPictures && response.hasFailed)
        #expect(response.deadline == at(now) + LossResponse.Limits().minimumHold * 2)
    }

    @Test mutating func `does not try pictures while sound alone loses as much`() {
        for _ in 0..<7 { report(70) }
        advance(500)
        #expect(!response.sendsPictures)
        report(20)
        advance(1_000)
        #expect(response.sendsPictures)
    }

    @Test mutating func `after pictures have arrived for a while, the response starts over`() {
        report(70)
        report(70)
        for _ in 0..<5 { report(0) }
        advance(0)
        advance(500, isWaiting: true)
        advance(500)
        report(0)
        advance(3_000)
        #expect(response.mayReplay && !response.isTrying && !response.hasFailed)
        #expect(response.deadline == nil)
    }

    @Test mutating func `waits for a key frame, but not for ever`() {
        report(70)
        report(70)
        for _ in 0..<5 { report(0) }
        advance(0)
        for _ in 0..<60 { advance(500, isWaiting: true) }
        #expect(response.deadline == at(now) + LossResponse.Limits().trial)
    }
}
