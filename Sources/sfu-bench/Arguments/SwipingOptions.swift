/// The options of `feed`: how viewers swipe.
extension OptionDefinition {
    static let swipingOptions = [
        OptionDefinition(
            "--swipe-rate", "N", .audience, for: [.feed],
            "swipes per second by all viewers together; 0 for none (default: one per viewer every 2 s)"
        ) { options, text throws(UsageError) in
            options.audience.swiping.rate = try OptionValue.number(text, "--swipe-rate", 0...100_000)
        },
        OptionDefinition(
            "--preload", "WHEN", .audience, for: [.feed],
            "when to load the neighbour: eager or on-swipe (default eager)"
        ) { options, text throws(UsageError) in
            guard let preload = SwipingOptions.Preload(rawValue: text) else {
                throw UsageError("--preload must be eager or on-swipe, not \"\(text)\"")
            }
            options.audience.swiping.preload = preload
        },
        share("--jumps", "share of swipes that jump to any stream (default 10)", \.jumps),
        share("--turns", "share of the other swipes that go back (default 20)", \.turns),
        share(
            "--calls-off", "share of the other swipes that are canceled before the next story (default 5)",
            \.callsOff),
        OptionDefinition(
            "--seed", "N", .audience, for: [.feed],
            "random seed: the same seed gives the same moves (default 1)"
        ) { options, text throws(UsageError) in
            options.audience.swiping.seed = UInt64(
                try OptionValue.count(text, "--seed", 0...1_000_000_000))
        },
    ]

    /// An option for a share, in percent on the command line and from 0 to 1 in the options.
    private static func share(
        _ name: String, _ help: String, _ path: any WritableKeyPath<SwipingOptions, Double> & Sendable
    ) -> OptionDefinition {
        OptionDefinition(name, "PERCENT", .audience, for: [.feed], help) { options, text throws(UsageError) in
            options.audience.swiping[keyPath: path] = try OptionValue.number(text, name, 0...100) / 100
        }
    }
}
