import Base
import Testing

@testable import Interaction

/// Pages load its picture and link to its address, so neither may be more than an address.
@Suite struct `A card` {
    private func card(
        title: String = "Teapot", link: String = "https://a.example/", picture: String? = nil,
        data: JSON? = nil
    ) -> StreamCard {
        StreamCard(title: title, link: link, picture: picture, data: data)
    }

    /// The field that is refused; nil for none.
    private func refused(_ card: StreamCard) -> Interaction.Refusal? {
        do throws(Interaction.Refusal) {
            _ = try card.cleaned()
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        "https://a", "https://a.example/b?c=d&e=f#g", "https://[2001:db8::1]:8443/", "https://a/%20%22",
        "https://" + String(repeating: "a", count: 492),
    ])
    func `leads to an address, and shows one`(address: String) {
        #expect(refused(card(link: address)) == nil)
        #expect(refused(card(picture: address)) == nil)
    }

    @Test(arguments: [
        "", "https://", "http://a", "HTTPS://a", "javascript:alert(1)", "data:text/html,x", "//a",
        "a.example", " https://a", "https://a ", "https://a b", "https://a\n", "https://a\"b", "https://a'b",
        "https://a<b", "https://a>b", "https://a\\b", "https://a`b", "https://a{b}", "https://a|b",
        "https://a^b", "https://ä.example", "https://a\u{7F}", "https://a\0", "https://a\u{200B}",
        "https://" + String(repeating: "a", count: 493),
    ])
    func `leads to nothing else, and shows nothing else`(address: String) {
        #expect(refused(card(link: address)) == .invalid("link"))
        #expect(refused(card(picture: address)) == .invalid("picture"))
    }

    @Test func `may show a picture of this server, but not link to a path`() {
        for path in ["/", "/pictures/a.png", "/a?b=c", "/" + String(repeating: "a", count: 499)] {
            #expect(refused(card(picture: path)) == nil)
            #expect(refused(card(link: path)) == .invalid("link"))
        }
        // Two slashes begin the name of another server, and so does a backslash for browsers.
        for path in ["//a.example/b", "/\\a.example", "/a b", "/" + String(repeating: "a", count: 500)] {
            #expect(refused(card(picture: path)) == .invalid("picture"))
        }
    }

    @Test func `has a title of one line, as comments are`() throws {
        let cleaned = try card(title: "  A\n\u{202E}pot\t of  tea ").cleaned()
        #expect(cleaned.title == "A pot of tea")
        let fox = String(repeating: "🦊", count: 100)
        #expect(try card(title: fox).cleaned().title == fox)
        for title in ["", " ", "\u{200B}", "\u{3164}", fox + "a"] {
            #expect(refused(card(title: title)) == .invalid("title"))
        }
        // Blanks at its ends do not count.
        #expect(refused(card(title: "   " + fox + "   ")) == nil)
    }

    @Test func `has data of the app that stay as they are, up to a limit`() throws {
        // Two of its bytes are quotation marks.
        let most = JSON.string(String(repeating: "a", count: 2_046))
        #expect(try card(data: most).cleaned().data == most)
        #expect(refused(card(data: .string(String(repeating: "a", count: 2_047)))) == .invalid("data"))
        let strange = JSON.object(["<script>": .array([.string("\u{202E}"), .number(1)])])
        #expect(try card(data: strange).cleaned().data == strange)
    }

    @Test func `is refused for the first that is wrong with it`() {
        let long = JSON.string(String(repeating: "a", count: 3_000))
        #expect(refused(card(title: "", link: "", picture: "", data: long)) == .invalid("title"))
        #expect(refused(card(link: "", picture: "", data: long)) == .invalid("link"))
        #expect(refused(card(picture: "", data: long)) == .invalid("picture"))
    }
}

@Suite struct `What is left of a rate` {
    private static let rate = Rate(burst: 3, perSecond: 0.5)
    private var allowance = Allowance(Self.rate, at: .zero)

    private static func time(_ milliseconds: Int) -> MonotonicTime {
        MonotonicTime.zero + .milliseconds(milliseconds)
    }

    private mutating func take(_ wanted: Int, at milliseconds: Int) -> Int {
        allowance.take(wanted, of: Self.rate, at: Self.time(milliseconds))
    }

    private mutating func wait(at milliseconds: Int) -> Int? {
        allowance.wait(for: Self.rate, at: Self.time(milliseconds))
    }

    @Test mutating func `is given in part where more is wanted, and no more than a burst`() {
        let taken = [take(2, at: 0), take(2, at: 0), take(1, at: 0)]
        #expect(taken == [2, 1, 0])
        let later = [take(9, at: 1_000), take(9, at: 2_000), take(9, at: 3_000), take(9, at: 4_000)]
        #expect(later == [0, 1, 0, 1])
        let hourLater = take(9, at: 3_600_000)
        #expect(hourLater == 3)
    }

    @Test(arguments: [0, -1, .min] as [Int])
    mutating func `does not grow by what nobody wants`(wanted: Int) {
        let first = take(3, at: 0)
        let none = take(wanted, at: 0)
        let last = take(3, at: 0)
        #expect(first == 3 && none == 0 && last == 0)
    }

    @Test mutating func `is there again after the wait that is told`() {
        let free = wait(at: 0)
        _ = take(.max, at: 0)
        let waits = [wait(at: 0), wait(at: 500), wait(at: 1_000), wait(at: 1_500), wait(at: 2_000)]
        #expect(free == nil)
        #expect(waits == [2, 2, 1, 1, nil])
        // To look does not take.
        let taken = take(1, at: 2_000)
        #expect(taken == 1)
    }

    /// Neither does the same time count twice, once it is reached again.
    @Test mutating func `does not grow while time goes back`() {
        _ = take(3, at: 10_000)
        let back = take(3, at: 0)
        let again = take(3, at: 10_000)
        let later = take(3, at: 12_000)
        #expect([back, again, later] == [0, 0, 1])
        _ = allowance.take(3, of: Self.rate, at: .distantFuture)
        let end = allowance.take(3, of: Self.rate, at: .distantFuture)
        #expect(end == 0)
    }
}
