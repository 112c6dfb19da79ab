import Crypto
import Testing

@Suite struct `Secure random numbers` {
    @Test func `do not repeat, within what was fetched at once and beyond`() {
        let random = SecureRandom()
        let numbers = (0..<1_000).map { _ in random.next() }
        #expect(Set(numbers).count == numbers.count)
        #expect(!numbers.contains(0))
    }

    @Test func `are others for everybody who holds the same generator`() {
        let random = SecureRandom()
        let first = random
        let second = random
        let numbers = (0..<40).map { _ in [first.next(), second.next()] }.flatMap(\.self)
        #expect(Set(numbers).count == numbers.count)
    }

    @Test func `use every bit`() {
        let random = SecureRandom()
        var ones: UInt64 = 0
        var zeros: UInt64 = 0
        for _ in 0..<200 {
            let number = random.next()
            ones |= number
            zeros |= ~number
        }
        #expect(ones == .max && zeros == .max)
    }
}
