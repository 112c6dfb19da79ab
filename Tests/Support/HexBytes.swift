/// The bytes written as hexadecimal digits; blanks and line ends are skipped.
package func hexBytes(_ text: String) -> [UInt8] {
    let digits = text.compactMap(\.hexDigitValue)
    precondition(digits.count % 2 == 0, "half a byte in a test's hexadecimal text")
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}
