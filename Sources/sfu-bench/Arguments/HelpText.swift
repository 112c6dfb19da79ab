/// The texts that `--help` prints.
enum HelpText {
    /// Columns of the terminal.
    private static let width = 100
    /// Where the descriptions of options begin.
    private static let indent = 26

    static var overview: String {
        let commands = Command.listed.map { command in
            "  " + command.rawValue.padded(to: 12) + command.summary
        }
        return """
            sfu-bench measures WHIP and WHEP servers with real ICE, DTLS and SRTP, and also RTMP, SRT and HLS.

            usage: sfu-bench COMMAND [SERVER] [OPTION...]
                   sfu-bench COMMAND --help

            \(commands.joined(separator: "\n"))

            SERVER is a URL (default http://127.0.0.1:8080). Exit codes: 0 measured, 1 failed,
            2 invalid command line, 3 void: this tool itself was the bottleneck.

            """
    }

    /// The help for one command: its options by group, and examples.
    static func text(for command: Command) -> String {
        var text = """
            usage: sfu-bench \(command.rawValue) [SERVER] [OPTION...]

            \(command.rawValue): \(command.summary).

            """
        for group in OptionDefinition.Group.allCases {
            let options = OptionDefinition.table.filter {
                $0.group == group && $0.commands.contains(command)
            }
            guard !options.isEmpty else { continue }
            text += "\n\(group.rawValue):\n"
            for option in options { text += entry(option) }
        }
        return text + "\n" + examples(for: command)
    }

    /// One option; its description starts on the next line if its name is too long.
    private static func entry(_ option: OptionDefinition) -> String {
        let name = "  " + option.name + (option.placeholder.map { " " + $0 } ?? "")
        var lines = wrapped(option.help, columns: width - indent)[...]
        var text: String
        if name.count < indent, let first = lines.popFirst() {
            text = name.padded(to: indent) + first + "\n"
        } else {
            text = name + "\n"
        }
        for line in lines { text += String(repeating: " ", count: indent) + line + "\n" }
        return text
    }

    /// Breaks text into lines at spaces.
    private static func wrapped(_ text: String, columns: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, line.count + 1 + word.count > columns {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        return line.isEmpty ? lines : lines + [line]
    }

    private static func examples(for command: Command) -> String {
        let lines =
            switch command {
            case .publish:
                [
                    "sfu-bench publish --stream demo --duration 1h",
                    "sfu-bench publish --protocol rtmp --stream demo --duration 1h",
                    "sfu-bench publish --protocol srt --stream demo --streams 20 --duration 10m",
                ]
            case .play:
                [
                    "sfu-bench play --stream demo --viewers 50",
                    "sfu-bench play --protocol hls --stream demo --viewers 1000",
                    "sfu-bench play --protocol hls http://127.0.0.1:8889/demo/index.m3u8",
                ]
            case .load:
                [
                    "sfu-bench load --viewers 300 --html report.html", "sfu-bench load --ramp 100",
                    "sfu-bench load http://127.0.0.1:8889 --whip '/{stream}/whip' --whep '/{stream}/whep'",
                ]
            case .joinStorm:
                [
                    "sfu-bench join-storm --viewers 300 --playing 100",
                    "sfu-bench join-storm --viewers 3000 --playing 100 --handshakes-only",
                ]
            case .churn: ["sfu-bench churn --viewers 100 --join-rate 20 --duration 5m"]
            case .restart:
                [
                    "sfu-bench restart --streams 20 --viewers 25 --command 'systemctl restart rostrum'",
                    "sfu-bench restart --viewers 300        # then restart the server when prompted",
                ]
            case .network:
                [
                    "sfu-bench network --profile all --html network.html",
                    "sfu-bench network --profile lte,train --reports-only",
                    "sfu-bench network http://127.0.0.1:8889 --whip '/{stream}/whip' --whep '/{stream}/whep'",
                ]
            case .sync:
                [
                    "sfu-bench sync --clients 1000",
                    "sfu-bench sync --clients 10000 --commands 20 --hold 60s",
                ]
            case .interact:
                [
                    "sfu-bench interact --viewers 1000",
                    "sfu-bench interact --viewers 10000 --hearts 10 --comments 0 --gifts 0 --votes 0",
                    "sfu-bench interact --viewers 100 --gifts 3000",
                ]
            case .demo: ["sfu-bench demo", "sfu-bench demo http://127.0.0.1:9090 --duration 10m"]
            case .feed:
                [
                    "sfu-bench feed --streams 20 --viewers 500 --swipe-rate 500 --bitrate 500k",
                    "sfu-bench feed --streams ann,bob,cem --preload on-swipe --jumps 50",
                ]
            }
        return "Examples:\n" + lines.map { "  \($0)\n" }.joined()
    }
}

extension String {
    /// Followed by spaces up to a width, and by at least one.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(width - count, 1))
    }
}
