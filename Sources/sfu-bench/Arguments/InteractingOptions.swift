/// The options of `interact`: how much an audience writes, taps, gives and votes.
extension OptionDefinition {
    static let interactingOptions = [
        OptionDefinition(
            "--hearts", "N", .audience, for: [.interact],
            "hearts that each viewer taps per second, a whole number; servers count 20 per person (default 2)"
        ) { options, text throws(UsageError) in
            options.interacting.hearts = try OptionValue.count(
                text, "--hearts", 0...InteractingOptions.mostHearts)
        },
        OptionDefinition(
            "--tap-interval", "TIME", .audience, for: [.interact],
            "time between two messages in which a viewer reports taps (default 500ms, as pages do)"
        ) { options, text throws(UsageError) in
            options.interacting.tapInterval = try OptionValue.seconds(text, "--tap-interval", 0.5...2)
        },
        rate("--comments", "comments per second, at most one per viewer (default 20)", \.comments),
        rate("--gifts", "gifts per second, sent over HTTP as a shop does (default 10)", \.gifts),
        rate("--votes", "votes per second, until each viewer has voted once (default 50)", \.votes),
        OptionDefinition(
            "--quiet-time", "TIME", .timing, for: [.interact],
            "time without any interaction beforehand, to measure what a quiet stream costs (default 5s)"
        ) { options, text throws(UsageError) in
            options.interacting.quiet = try OptionValue.seconds(text, "--quiet-time", 0...600)
        },
    ]

    /// An option for a rate, of all viewers together.
    private static func rate(
        _ name: String, _ help: String, _ path: any WritableKeyPath<InteractingOptions, Double> & Sendable
    ) -> OptionDefinition {
        OptionDefinition(name, "N", .audience, for: [.interact], help) { options, text throws(UsageError) in
            options.interacting[keyPath: path] = try OptionValue.number(text, name, 0...100_000)
        }
    }
}

extension InteractingOptions {
    /// Checks that no viewer has to do more than the server allows one person: refusals are not to be measured.
    func check(viewers: Int) throws(UsageError) {
        guard viewers > 0 else { throw UsageError("interact needs an audience: --viewers must not be 0") }
        guard comments <= Double(viewers) else {
            throw UsageError("--comments needs as many --viewers: each writes one per second at most")
        }
    }
}
