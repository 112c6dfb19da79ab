import Base
import Peer
import TestSupport
import Testing

@Suite struct `A model of loss` {
    private var model = LossModel()

    @Test mutating func `explains the same loss at any rate by the path`() {
        for rate in [2.0e6, 1.0e6, 1.5e6, 2.0e6, 1.2e6] {
            model.add(LossModel.Observation(rate: rate, packets: 60, lost: 6))
        }
        let free = model.fit(limit: .infinity, newest: 15)
        #expect(abs(free.inherentLoss - 0.1) < 0.03)
        #expect(free.likelihood > model.fit(limit: 1.8e6, newest: 15).likelihood + 1)
        #expect(free.likelihood > model.fit(limit: 1.0e6, newest: 15).likelihood + 3)
    }

    @Test mutating func `explains loss of what exceeds a rate by that rate`() {
        for rate in [2.0e6, 0.8e6, 1.5e6, 2.0e6, 0.9e6] {
            let lost = 60 * max(rate - 1e6, 0) / rate
            model.add(LossModel.Observation(rate: rate, packets: 60, lost: lost))
        }
        let limited = model.fit(limit: 1e6, newest: 15)
        #expect(limited.inherentLoss < 0.01)
        #expect(limited.likelihood > model.fit(limit: .infinity, newest: 15).likelihood + 20)
        #expect(limited.likelihood > model.fit(limit: 1.4e6, newest: 15).likelihood + 3)
        #expect(limited.likelihood > model.fit(limit: 0.7e6, newest: 15).likelihood + 3)
    }

    @Test mutating func `prefers a limit while rates do not tell, unless the path is known`() {
        for _ in 0..<5 { model.add(LossModel.Observation(rate: 2e6, packets: 60, lost: 9)) }
        #expect(
            model.fit(limit: 1.7e6, newest: 5).likelihood > model.fit(limit: .infinity, newest: 5).likelihood
                + 2)
        model.knownLoss = 0.15
        #expect(
            model.fit(limit: 1.7e6, newest: 5).likelihood
                < model.fit(limit: .infinity, newest: 5).likelihood + 0.5)
    }

    @Test mutating func `corrects what came late`() {
        model.add(LossModel.Observation(rate: 2e6, packets: 60, lost: 2))
        model.restoreOne()
        #expect(model.lost(newest: 4) == 1)
        model.restoreOne()
        model.restoreOne()
        #expect(model.lost(newest: 4) == 0)
    }
}

@Suite struct `A loss-based rate` {
    private var control = LossBasedRate()
    private var random = SeededGenerator(seed: 7)
    private var now: Int64 = 0
    private var estimate = 2_500_000.0
    private var verdicts: [LossBasedRate.Verdict] = []

    /// Sends packets of 1,000 bytes at a rate, of which a share is lost.
    private mutating func send(_ rate: Double, loss: Double, milliseconds: Int64, isQueueing: Bool = false) {
        let end = now + milliseconds
        var owed = 0.0
        while now < end {
            owed += rate / 8_000_000
            while owed >= 1 {
                owed -= 1
                let isLost = Double.random(in: 0..<1, using: &random) < loss
                let outcome = PacketOutcome(sent: at(now), size: 1_000, arrival: isLost ? nil : now)
                guard control.add(outcome, size: 1_000) else { continue }
                let verdict = control.judge(estimate: estimate, isQueueing: isQueueing, at: at(now))
                if verdict != .unchanged { verdicts.append(verdict) }
                if case .limit(let limit) = verdict { estimate = limit }
                if case .restore(let before) = verdict { estimate = before }
            }
            now += 1
        }
        control.advance(to: at(now))
    }

    /// An application may not be able to send less; then it shows that it need not.
    @Test mutating func `takes a limit back when more than that comes through`() {
        send(2_000_000, loss: 0, milliseconds: 1_000)
        send(2_000_000, loss: 0.3, milliseconds: 500)
        #expect(control.rate ?? .infinity < 1_600_000)
        send(2_000_000, loss: 0, milliseconds: 800)
        #expect(control.rate == nil)
        #expect(estimate > 1_900_000)
    }

    @Test mutating func `sets a limit within half a second where much is lost suddenly`() {
        send(2_000_000, loss: 0, milliseconds: 5_000)
        #expect(verdicts.isEmpty)
        send(2_000_000, loss: 0.5, milliseconds: 700)
        #expect((0.9e6...1.4e6).contains(estimate))
        #expect(control.rate == estimate)
    }

    @Test mutating func `tolerates a little`() {
        send(2_000_000, loss: 0.02, milliseconds: 30_000)
        #expect(verdicts.isEmpty)
    }

    @Test mutating func `takes a limit back that changes nothing, and knows the path afterwards`() {
        send(2_200_000, loss: 0.1, milliseconds: 3_000)
        for _ in 0..<40 { send(min(2_200_000, 0.95 * estimate), loss: 0.1, milliseconds: 500) }
        #expect(verdicts.contains(.restore(2_500_000)))
        #expect((0.07...0.13).contains(control.inherentLoss))
        verdicts = []
        send(2_200_000, loss: 0.1, milliseconds: 10_000)
        #expect(verdicts.isEmpty)
    }

    @Test mutating func `learns at low rates without any limit`() {
        send(800_000, loss: 0.1, milliseconds: 15_000)
        #expect(verdicts.isEmpty)
        #expect((0.07...0.13).contains(control.inherentLoss))
    }

    @Test mutating func `holds a limit longer when it is needed again`() {
        func begun(_ self: inout Self) -> Int64 {
            self.estimate = 2_500_000
            let start = self.now
            self.send(2_000_000, loss: 0.5, milliseconds: 1_000)
            while self.control.rate != nil { self.send(400_000, loss: 0, milliseconds: 50) }
            return self.now - start
        }
        let first = begun(&self)
        let second = begun(&self)
        #expect((2_000...3_500).contains(first))
        #expect((4_000...5_500).contains(second))
    }

    @Test mutating func `leaves it to delay while a queue grows`() {
        send(2_000_000, loss: 0.5, milliseconds: 1_000, isQueueing: true)
        #expect(verdicts.isEmpty)
    }
}
