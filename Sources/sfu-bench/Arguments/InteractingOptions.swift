/// The options of `interact`: how much an audience writes, taps, gives and votes.
extension OptionDefinition {
    static let interactingOptions = [
        OptionDefinition(
            "--hearts", "N", .audience, for: [.interact],
            "what each viewer taps in a second, as a whole number; a server counts 20 of one person (default 2)"
        ) { options, text throws(UsageError) in
            options.interacting.hearts = try OptionValue.count(
                text, "--hearts", 0...InteractingOptions.mostHearts)
        },
        OptionDefinition(
            "--tap-interval", "TIME", .audience, for: [.interact],
            "between two messages in which a viewer tells what they tapped (default 500ms, as pages do)"
        ) { options, text throws(UsageError) in
            options.interacting.tapInterval = try OptionValue.seconds(text, "--tap-interval", 0.5...2)
        },
        rate("--comments", "comments a second, at most one of each viewer (default 20)", \.comments),
        rate("--gifts", "gifts a second, as a shop gives them by HTTP (default 10)", \.gifts),
        rate("--votes", "votes a second, until each viewer has voted once (default 50)", \.votes),
        OptionDefinition(
            "--quiet-time", "TIME", .timing, for: [.interact],
            "how long nobody does anything before, which tells what a quiet stream costs (default 5s)"
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
        guard viewers > 0 else { throw UsageError("an audience wants --viewers") }
        guard comments <= Double(viewers) else {
            throw UsageError("--comments wants as many --viewers: each writes one a second at most")
        }
    }
}
