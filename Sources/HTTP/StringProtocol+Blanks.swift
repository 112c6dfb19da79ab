extension StringProtocol {
    /// The text without blanks and tabs at both ends (OWS of RFC 9110 §5.6.3).
    package var trimmed: String {
        var text = Substring(self)
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return String(text)
    }
}
