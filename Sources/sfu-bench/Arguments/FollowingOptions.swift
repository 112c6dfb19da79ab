/// The options of `sync`: how many clients follow a stream, and which commands they see.
extension OptionDefinition {
    static let followingOptions = [
        OptionDefinition(
            "--clients", "N", .audience, for: [.sync], "WebSockets that follow the stream (default 1000)"
        ) { options, text throws(UsageError) in
            options.following.clients = try OptionValue.count(text, "--clients", 1...50_000)
        },
        OptionDefinition(
            "--sample", "N", .audience, for: [.sync],
            "of them, those that a thread of their own reads, so that what the others cost this tool is no part of "
                + "their times (default 20)"
        ) { options, text throws(UsageError) in
            options.following.sample = try OptionValue.count(text, "--sample", 0...1_000)
        },
        OptionDefinition(
            "--commands", "N", .audience, for: [.sync],
            "durable commands, one after the other: a hand goes up, and down again (default 100)"
        ) { options, text throws(UsageError) in
            options.following.commands = try OptionValue.count(text, "--commands", 0...100_000)
        },
        OptionDefinition(
            "--pause", "TIME", .timing, for: [.sync],
            "between the last client's change and the next command (default 50ms; beyond 200 clients, where the "
                + "server gathers what comes sooner, 120ms or more)"
        ) { options, text throws(UsageError) in
            options.following.pause = try OptionValue.seconds(text, "--pause", 0...60)
        },
        OptionDefinition(
            "--hold", "TIME", .timing, for: [.sync],
            "how long nobody may be lost after the commands (default 0)"
        ) { options, text throws(UsageError) in
            options.following.hold = try OptionValue.seconds(text, "--hold", 0...86_400)
        },
    ]
}
