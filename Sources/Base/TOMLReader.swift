/// Parses the lines `key = value` of a `TOMLTable`, one after the other.
struct TOMLReader {
    private typealias Failure = TOMLTable.Failure

    private let scalars: [Unicode.Scalar]
    private var position = 0
    private var line = 1

    /// Works on scalars, because TOML's rules are about those and not about characters.
    init(_ text: String) {
        scalars = Array(text.unicodeScalars)
    }

    /// Whether a key without quotes may contain it.
    static func isKeyScalar(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "_", "-": true
        default: false
        }
    }

    /// Whether it is a control character that a string must not contain unescaped; a tab is permitted.
    static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 && scalar != "\t" || scalar.value == 0x7F
    }

    /// Parses the next setting.
    /// - Returns: nil at the end of the text.
    mutating func next() throws(TOMLTable.Failure) -> TOMLTable.Entry? {
        try skipEmptyLines()
        guard let first = current else { return nil }
        let start = line
        guard Self.isKeyScalar(first) else {
            throw first == "["
                ? failure("sections are not supported; write each setting as name = value")
                : failure("\(Self.shown(first)) cannot start a name; write name = value")
        }
        let key = takeText(while: Self.isKeyScalar)
        skipBlanks()
        guard current == "=" else {
            throw failure(
                current == "."
                    ? "\(key). begins a dotted name, which is not supported; write name = value"
                    : "there is no = after \(key); write \(key) = value")
        }
        position += 1
        skipBlanks()
        let value = try takeValue(of: key)
        try endLine()
        return TOMLTable.Entry(key: key, value: value, line: start)
    }

    // MARK: Values

    /// Parses a string, a list, a truth value or an integer; explains what is wrong with anything else.
    private mutating func takeValue(of key: String) throws(TOMLTable.Failure) -> TOMLTable.Value {
        switch current {
        case "\"", "'": return .string(try takeString())
        case "[": return .strings(try takeStrings())
        default: break
        }
        let word = takeText { !Self.isBlank($0) && !Self.isControl($0) && $0 != "#" && $0 != "," }
        switch word {
        case "": throw failure("\(key) has no value; write \(key) = value")
        case "true": return .boolean(true)
        case "false": return .boolean(false)
        default: break
        }
        if let number = Self.integer(word) { return .integer(number) }
        let first = word.unicodeScalars.first
        let isNumeric = first.map { "0"..."9" ~= $0 || $0 == "+" || $0 == "-" } ?? false
        // An address begins with a digit, too, but only needs quotes.
        let isText =
            word.unicodeScalars.contains { $0 == ":" || $0 == "/" } || word.split(separator: ".").count > 2
        throw failure(
            isNumeric && !isText
                ? "\(word) is not a decimal whole number; use the form 20000 or 20_000"
                : "\(word) must be in quotes: \(key) = \(TOMLTable.Value.string(word).text)")
    }

    /// A decimal integer with an optional sign and `_` between digits; nil for anything else.
    private static func integer(_ word: String) -> Int? {
        var digits = Substring(word)
        if let sign = digits.first, sign == "+" || sign == "-" { digits = digits.dropFirst() }
        let groups = digits.split(separator: "_", omittingEmptySubsequences: false)
        let isDecimal = groups.allSatisfy { group in
            !group.isEmpty && group.utf8.allSatisfy { (0x30...0x39).contains($0) }
        }
        guard isDecimal, digits == "0" || digits.first != "0" else { return nil }
        return Int(word.replacing("_", with: ""))
    }

    /// Parses a list such as `["one", "two"]`, which may span lines and have a comma after the last string.
    private mutating func takeStrings() throws(TOMLTable.Failure) -> [String] {
        let start = line
        var strings: [String] = []
        position += 1
        while true {
            try skipEmptyLines()
            switch current {
            case "]":
                position += 1
                return strings
            case "\"", "'": strings.append(try takeString())
            case nil: throw Failure(line: start, reason: Self.unclosedList)
            default: throw failure("a list can have only strings in quotes, such as [\"one\", \"two\"]")
            }
            try skipEmptyLines()
            if current == "," {
                position += 1
            } else if current != "]" {
                guard current != nil else { throw Failure(line: start, reason: Self.unclosedList) }
                throw failure("the strings of a list need a comma between them")
            }
        }
    }

    private static let unclosedList = "the list is not closed; add ] at its end"

    /// Parses a string in double quotes, with escapes, or in single quotes, without.
    private mutating func takeString() throws(TOMLTable.Failure) -> String {
        guard let quote = current else { return "" }
        position += 1
        if current == quote, position + 1 < scalars.count, scalars[position + 1] == quote {
            throw failure("multi-line strings are not supported; write a line break as \\n")
        }
        var result = String.UnicodeScalarView()
        while let scalar = current {
            position += 1
            if scalar == quote { return String(result) }
            if Self.isControl(scalar) {
                position -= 1
                guard scalar == "\n" || scalar == "\r" else {
                    throw failure("\(Self.shown(scalar)) is not allowed in a string")
                }
                break
            }
            result.append(scalar == "\\" && quote == "\"" ? try takeEscape() : scalar)
        }
        throw failure("the string is not closed; add \(quote) at its end")
    }

    /// Parses what follows a backslash.
    private mutating func takeEscape() throws(TOMLTable.Failure) -> Unicode.Scalar {
        let letter = current
        position += 1
        switch letter {
        case "b": return "\u{8}"
        case "t": return "\t"
        case "n": return "\n"
        case "f": return "\u{C}"
        case "r": return "\r"
        case "\"": return "\""
        case "\\": return "\\"
        case "u": return try takeCode(digits: 4)
        case "U": return try takeCode(digits: 8)
        default:
            position -= 1
            throw failure(
                "a \\ must be followed by one of b t n f r \" \\ u U; for itself write \\\\ or use '…'")
        }
    }

    /// Parses the hexadecimal code of a character.
    private mutating func takeCode(digits: Int) throws(TOMLTable.Failure) -> Unicode.Scalar {
        var code: UInt32 = 0
        for _ in 0..<digits {
            guard let scalar = current, let digit = Character(scalar).hexDigitValue, scalar.isASCII else {
                throw failure("\(digits == 4 ? "\\u" : "\\U") needs \(digits) hexadecimal digits")
            }
            code = code << 4 | UInt32(digit)
            position += 1
        }
        guard let scalar = Unicode.Scalar(code) else {
            throw failure("there is no character with the code \(String(code, radix: 16))")
        }
        return scalar
    }

    // MARK: Between values

    private var current: Unicode.Scalar? { position < scalars.count ? scalars[position] : nil }

    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" }

    private mutating func skipBlanks() {
        while let scalar = current, Self.isBlank(scalar) { position += 1 }
    }

    private mutating func takeText(while isWanted: (Unicode.Scalar) -> Bool) -> String {
        let start = position
        while let scalar = current, isWanted(scalar) { position += 1 }
        var text = String.UnicodeScalarView()
        text.append(contentsOf: scalars[start..<position])
        return String(text)
    }

    /// Skips blanks, comments and line ends.
    private mutating func skipEmptyLines() throws(TOMLTable.Failure) {
        while true {
            skipBlanks()
            try skipComment()
            guard try skipNewline() else { return }
        }
    }

    /// Requires that nothing but blanks and a comment follows on the line.
    private mutating func endLine() throws(TOMLTable.Failure) {
        skipBlanks()
        try skipComment()
        guard current != nil else { return }
        guard try skipNewline() else {
            throw failure("only one setting is allowed per line; start a new line after its value")
        }
    }

    private mutating func skipComment() throws(TOMLTable.Failure) {
        guard current == "#" else { return }
        while let scalar = current, scalar != "\n" {
            let endsLine = scalar == "\r" && position + 1 < scalars.count && scalars[position + 1] == "\n"
            if endsLine { return }
            guard !Self.isControl(scalar) else {
                throw failure("\(Self.shown(scalar)) is not allowed in a comment")
            }
            position += 1
        }
    }

    private mutating func skipNewline() throws(TOMLTable.Failure) -> Bool {
        guard let scalar = current, scalar == "\n" || scalar == "\r" else { return false }
        if scalar == "\r" {
            position += 1
            guard current == "\n" else {
                throw failure("a carriage return is allowed only at the end of a line")
            }
        }
        position += 1
        line += 1
        return true
    }

    private func failure(_ reason: String) -> TOMLTable.Failure { Failure(line: line, reason: reason) }

    /// A character as error messages show it.
    private static func shown(_ scalar: Unicode.Scalar) -> String {
        isControl(scalar) ? "the control character \(scalar.value)" : "\(scalar)"
    }
}
