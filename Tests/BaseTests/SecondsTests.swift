import Base
import Testing

@Suite struct `Seconds to wait` {
    @Test(arguments: [(0, "0 seconds"), (1, "1 second"), (2, "2 seconds"), (60, "60 seconds")])
    func `are told in words`(_ seconds: Int, _ words: String) {
        #expect(seconds.inSeconds == words)
    }
}
