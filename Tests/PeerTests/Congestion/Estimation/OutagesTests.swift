import Base
import Peer
import Testing

@Suite struct `Packets lost in an outage` {
    /// A packet each so many milliseconds; `isLost` tells by its number.
    private func outcomes(
        _ count: Int, every interval: Int64 = 20, _ isLost: (Int) -> Bool
    ) -> [PacketOutcome] {
        (0..<count).map { number in
            let sent = MonotonicTime.zero + .milliseconds(interval * Int64(number))
            return PacketOutcome(sent: sent, size: 1_200, arrival: isLost(number) ? nil : sent.nanoseconds)
        }
    }

    private func places(of outages: Outages, upTo count: Int) -> [Int] {
        (0..<count).filter(outages.contains)
    }

    @Test func `every packet of a long run of losses is lost in an outage, wherever the run is`() {
        let middle = Outages(in: outcomes(100) { (30..<60).contains($0) })
        #expect(places(of: middle, upTo: 100) == Array(30..<60))
        let ends = Outages(in: outcomes(100) { $0 < 30 || $0 >= 70 })
        #expect(places(of: ends, upTo: 100) == Array(0..<30) + Array(70..<100))
        #expect(places(of: Outages(in: outcomes(50) { _ in true }), upTo: 50) == Array(0..<50))
    }

    @Test func `packets dropped by a full queue or by chance are not lost in an outage`() {
        #expect(places(of: Outages(in: outcomes(200) { $0 % 20 != 0 }), upTo: 200).isEmpty)
        #expect(
            places(of: Outages(in: outcomes(100, every: 5) { (10..<60).contains($0) }), upTo: 100).isEmpty)
        #expect(
            places(of: Outages(in: outcomes(60, every: 100) { (10..<25).contains($0) }), upTo: 60).isEmpty)
        #expect(places(of: Outages(in: []), upTo: 10).isEmpty)
    }
}
