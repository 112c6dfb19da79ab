import Base
import Testing

@testable import Gateway

@Suite struct ByteRanges {
    @Test(arguments: [
        ("bytes=0-0", 0..<1), ("bytes=5-", 5..<100), ("bytes=90-200", 90..<100), ("bytes=-10", 90..<100),
        ("bytes=-200", 0..<100), (" Bytes=3-4", 3..<5),
    ])
    func `are found in a file`(field: String, range: Range<Int>) throws {
        #expect(try #require(ByteRange(field)).range(of: 100) == range)
    }

    @Test(arguments: ["bytes=100-", "bytes=100-200", "bytes=-0"])
    func `beyond the file are none`(field: String) throws {
        #expect(try #require(ByteRange(field)).range(of: 100) == nil)
    }

    @Test(arguments: [
        "", "bytes", "bytes=", "bytes=-", "bytes=5", "bytes=9-3", "bytes=0-1,5-6", "bytes=a-b", "bytes=1-x",
        "items=0-1", "bytes=+1-2", "bytes=1--2", "bytes=99999999999999999999-",
        "bytes=0-99999999999999999999",
    ])
    func `of other forms are passed over`(field: String) {
        #expect(ByteRange(field) == nil)
    }

    /// All ranges of short files, compared with the bytes that they name (RFC 9110 §14.1.2).
    @Test(arguments: 0...8) func `are the bytes that are wanted and there`(size: Int) {
        let bytes = Array(0..<size)
        func compare(_ field: String, _ wanted: some Sequence<Int>) {
            let range = ByteRange(field)?.range(of: size)
            let found = range.map { Array($0) } ?? []
            #expect(found == Array(wanted), "\(field)")
        }
        for first in 0...10 {
            compare("bytes=\(first)-", bytes.filter { $0 >= first })
            compare("bytes=-\(first)", bytes.suffix(first))
            for last in first...10 {
                compare("bytes=\(first)-\(last)", bytes.filter { (first...last).contains($0) })
            }
        }
    }

    @Test func `of an empty file are none`() {
        #expect(ByteRange("bytes=0-")?.range(of: 0) == nil)
        #expect(ByteRange("bytes=-5")?.range(of: 0) == nil)
    }
}
