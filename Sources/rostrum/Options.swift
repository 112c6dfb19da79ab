/// One thing that can be configured, under one name as a flag, as an environment variable and in the file.
struct Option: Sendable {
    /// How many values an option has, and of which form.
    enum Kind: Sendable, Equatable {
        /// One value.
        case text
        /// Present or absent as a flag; `true` or `false` in the environment and in the file.
        case toggle
        /// Any number of values.
        case list
    }

    /// As in `--name`, `ROSTRUM_NAME` and `name = …`.
    let name: String
    let kind: Kind
    /// Represents the value in the help; empty for a toggle.
    let placeholder: String
    /// Lines of the help, already wrapped.
    let help: [String]

    init(_ name: String, _ kind: Kind, _ placeholder: String = "", _ help: String...) {
        self.name = name
        self.kind = kind
        self.placeholder = placeholder
        self.help = help
    }

    /// The environment variable: `ROSTRUM_PUBLIC_ADDRESS` for `public-address`.
    var variable: String {
        "ROSTRUM_" + name.uppercased().replacing("-", with: "_")
    }

    /// All options of `rostrum serve`, in the order of the help.
    static let all: [Option] = [
        Option(
            "http", .text, "ADDRESS:PORT",
            "Where to serve HTTP. Default 127.0.0.1:8080; 0.0.0.0:8080 for everyone. --tcp, --turn-tls",
            "and --turn-tcp may name the same port: what comes is told apart by its first bytes."),
        Option(
            "admin", .text, "ADDRESS:PORT",
            "Where to serve /metrics, /healthz and /readyz without a token, beside --http,",
            "where /metrics takes an admin's token from other machines. Default: nowhere."),
        Option(
            "trusted-proxy", .list, "CIDR[,CIDR]",
            "Reverse proxies whose X-Forwarded-For says who asks, such as 127.0.0.1 or",
            "10.0.0.0/8; limits then count for that address. Default: none."),
        Option(
            "udp", .text, "ADDRESS:PORT",
            "Where to receive media, for all workers. Default 0.0.0.0:7000. Firefox connects to no",
            "loopback address: with 127.0.0.1 only Chromium plays. ADDRESS:FIRST-LAST gives each",
            "worker a port of its own, which saves copying where many publish."),
        Option(
            "tcp", .text, "ADDRESS:PORT|off",
            "Where to receive media from clients whose network blocks UDP; one port for all",
            "workers, which it may share with --http. Default: address and first port of --udp."),
        Option(
            "rtmp", .text, "ADDRESS:PORT|off",
            "Where encoders may publish by RTMP, such as 0.0.0.0:1935. Keys and media go unencrypted.",
            "Default: off."),
        Option(
            "rtmps", .text, "ADDRESS:PORT|off",
            "Where encoders may publish by RTMPS, such as 0.0.0.0:1936, with --tls-certificate.",
            "Default: off."),
        Option(
            "srt", .text, "ADDRESS:PORT|off",
            "Where encoders may publish by SRT, such as 0.0.0.0:9710 (UDP). Default: off."),
        Option(
            "srt-passphrase", .text, "SECRET",
            "What encoders by SRT have to know beside their key, 10 to 79 characters: their media come",
            "encrypted, but not their keys. Better in ROSTRUM_SRT_PASSPHRASE or in the file: other",
            "users can see flags. Default: none."),
        Option(
            "srt-latency", .text, "MILLISECONDS",
            "How long packets by SRT that were lost may take to come again, 20 to 8000; encoders may ask",
            "for more. Four times the round trip is good. Default 200."),
        Option(
            "turn-tls", .text, "ADDRESS:PORT|off",
            "Where to relay to this server's own sessions by TURN over TLS, with --tls-certificate, for",
            "networks that let only HTTPS through: best on port 443, which it may share with --http.",
            "Default: off."),
        Option(
            "turn-tcp", .text, "ADDRESS:PORT|off",
            "The same over TCP, for clients that do not accept the certificate. Default: off."),
        Option(
            "turn-udp", .text, "ADDRESS:PORT|off",
            "The same over UDP, for networks that let one UDP port through, such as 3478. Default: off."),
        Option(
            "public-address", .list, "IP[,IP]",
            "Addresses that clients reach this machine by, when it stands",
            "behind a NAT; advertised before its own."),
        Option("workers", .text, "N", "Threads that carry media. Default: one for each processor."),
        Option("max-sessions", .text, "N", "Refuse more peer connections than this. Default 20000."),
        Option(
            "max-sessions-per-address", .text, "N",
            "Of viewers without a token, refuse more peer connections from one address, or one IPv6",
            "/64, whose /56 and /48 may have four times as many. Loopback has no limit. Default 500."),
        Option(
            "max-compositions", .text, "N",
            "Compose so many programmes at once, of those that somebody watches; viewers of",
            "more see who speaks instead.",
            "Default: two for each processor; one takes some tenths of a processor."),
        Option(
            "max-renditions", .text, "N",
            "Of publishers that send one size, make a smaller one of so many at once, for viewers",
            "whose network does not take it; viewers of more get sound alone. 0 for none.",
            "Default: one for each processor; one takes a quarter of a processor."),
        Option(
            "max-conversions", .text, "N",
            "Of publishers by RTMP or SRT whose H.264 browsers do not show, such as that with B-frames, make",
            "the pictures of so many anew at once; more are refused. 0 for none.",
            "Default: one for two processors; one takes up to a processor."),
        Option(
            "max-hls", .text, "N",
            "Make HLS of so many streams at once, while somebody asks for it at",
            "/hls/{stream}/index.m3u8, such as viewers whom WebRTC does not reach; others are refused. One takes",
            "a quarter of a processor, less where the publisher's own H.264 can be passed on, and as much again",
            "while somebody's link takes a smaller picture alone. 0 for none. Default: one for two processors."
        ),
        Option(
            "hls-part", .text, "MS",
            "Parts of its segments are so long: 200, 400, 500 or 1000 milliseconds. Who watches is three",
            "parts behind and little more, and asks as often as there are parts. Default: 500."),
        Option(
            "max-dvr", .text, "SECONDS",
            "Let hosts have so much of their streams kept on the disk for viewers by HLS who go back, with",
            "--max-hls and --data; such a stream is packaged for as long as it is live. An hour of",
            "2.5 Mbit/s takes 1.2 GB. 0 for nothing. Default: 7200, which is what a host may want at most."),
        Option(
            "max-restreams", .text, "N",
            "Send live streams' programmes on, by RTMP and RTMPS, to so many targets at once that",
            "their hosts name; others wait. A stream that is sent on takes a quarter of a processor or less,",
            "whatever its targets and HLS. Default: 0, which is none."),
        Option(
            "max-clips", .text, "N",
            "Keep the last two minutes of so many live streams in memory, as they came, so that clips can",
            "be made of them; of more none are. One takes what it sends in that time, 64 MB at most.",
            "0 for none. Default: 4, where recordings are kept."),
        Option(
            "restream-networks", .text, "public|all",
            "To which addresses they may be sent: all includes private and local ones, so that",
            "hosts can make this server connect to what only it reaches. Default: public."),
        Option(
            "data", .text, "DIRECTORY",
            "Where to keep what must outlive a restart, and recordings. Default: data;",
            "with --dev nowhere: a restart begins with nothing, and nothing is recorded."),
        Option(
            "keep-streams", .text, "30d|12h|forever",
            "Delete streams so long after their end, with all that is known of them: who was banned,",
            "comments, gifts. One with recordings stays until those are gone. Default forever."),
        Option(
            "keep-recordings", .text, "30d|12h|forever",
            "Delete recordings so long after their end; one that somebody plays, up to a day later.",
            "Default forever."),
        Option(
            "keep-clips", .text, "30d|12h|forever",
            "Delete clips so long after they were made; one that somebody plays, up to a day later.",
            "Default: as long as recordings."),
        Option(
            "keep-comments", .text, "30d|12h|forever",
            "Delete comments that old, and those of a stream that ended so long ago; the stream stays.",
            "Default forever."),
        Option(
            "webhook", .list, "URL[,URL]",
            "Where to post what happens to streams and participants."),
        Option(
            "review-webhook", .text, "URL",
            "Who is asked about each comment before anybody is shown it: an answer of 200 to 299 within",
            "200 ms lets it be shown, 403 keeps it away."),
        Option(
            "review-default", .text, "allow|deny",
            "What counts where that receiver says neither in time. Default allow."),
        Option(
            "webhook-secret", .text, "SECRET",
            "What webhooks are signed with, at least 16 characters. Better in",
            "ROSTRUM_WEBHOOK_SECRET or in the file: other users can see flags."),
        Option("key-id", .text, "ID", "The name of the key that signs tokens; their claim iss."),
        Option(
            "secret", .text, "SECRET",
            "The key itself, at least 32 bytes. Better in ROSTRUM_SECRET or in the",
            "file: other users can see flags."),
        Option(
            "secret-file", .text, "FILE",
            "A file whose first line is the key, unless --secret gives it. What the keys in",
            "further lines signed is accepted until those are gone: put a new key above the",
            "old one, reload, and take the old one away when its tokens have ended."),
        Option(
            "viewers", .text, "public|token",
            "Whether viewers need a token. Default token; public with --dev."),
        Option(
            "feed-viewers-weight", .text, "N",
            "Points in the feed's order for each doubling of a stream's viewers, -1000 to 1000.",
            "Default 10."),
        Option(
            "feed-age-weight", .text, "N",
            "Points that a stream loses with each hour since its start. Default 5."),
        Option(
            "feed-boost-weight", .text, "N",
            "Points for each step of boost that an operator gives a stream. Default 10."),
        Option("tls-certificate", .text, "FILE", "PEM file with the certificate and those it depends on."),
        Option("tls-key", .text, "FILE", "PEM file with the certificate's key."),
        Option(
            "ice-server", .list, "URL[,USER,PASSWORD]", "A STUN or TURN server to tell clients of, such as",
            "turn:turn.example.org:3478?transport=udp,ann,secret. May be repeated. Only",
            "bearers of tokens are told of one with a password."),
        Option(
            "ice-server-secret", .text, "SECRET",
            "What TURN servers without USER,PASSWORD share (coturn's static-auth-secret):",
            "each client gets a password for twelve hours. Better in the environment."),
        Option(
            "srtp-engine", .text, "openssl|libsrtp2", "What encrypts media. Default openssl, which is faster."
        ),
        Option(
            "transcoder", .text, "on|off",
            "Whether pictures and sound are decoded, in a process of its own: previews,",
            "compositions, pause pictures and recordings. Default on."),
        Option(
            "transcoder-confinement", .text, "on|off",
            "Whether that process is used only when the kernel confines it (Landlock of Linux 5.13,",
            "and seccomp), so that a hostile picture gains nothing. Default on."),
        Option(
            "transcoder-nice", .text, "N",
            "How far that process stands behind others where processors are short of time, 0 to 19.",
            "Default 10; 0 on a machine that composes more than it forwards."),
        Option(
            "dev", .toggle, "",
            "For trying out on one machine: a key made at start, and tokens for anyone on",
            "this machine from POST /v1/tokens. Not for use behind a proxy: one that is neither",
            "trusted nor tells that it forwards passes for somebody on this machine."),
        Option("log-level", .text, "LEVEL", "debug, info, warning or error. Default info."),
        Option("log-format", .text, "text|json", "How log lines look. Default text."),
        Option(
            "config", .text, "FILE",
            "Read more options from a TOML file. Default: /etc/rostrum/rostrum.toml if there is one,",
            "but not with --dev."),
    ]

    /// - Returns: nil if there is no such option.
    static func named(_ name: some StringProtocol) -> Option? {
        all.first { $0.name == name }
    }
}

/// The texts that `--help` prints.
enum Help {
    /// The commands; also printed if the program is started without one.
    static let usage = """
        usage: rostrum serve [OPTION...]      run the server
               rostrum serve --check-config   say what would be run, without running it
               rostrum config show [OPTION...]
                                              print each option's value, and where it comes from
               rostrum doctor [--json] [OPTION...]
                                              look at all that a server needs here, and say what to do
               rostrum backup DIRECTORY [OPTION...]
                                              copy what the server has to remember, while it runs
               rostrum restore DIRECTORY [OPTION...]
                                              put a backup back, where there is no data
               rostrum token --role ROLE --stream NAME [OPTION...]
                                              sign a token, or make a link that holds one
               rostrum --help                 explain all options
               rostrum --version
        """

    /// The help of `rostrum serve`, with every option and its variable.
    static var full: String {
        var text = """
            Rostrum is a server for interactive live streaming over WebRTC.

            \(usage)

            A start for trying out:  rostrum serve --dev
            and in a browser:        http://localhost:8080
            A start for others:      rostrum serve … with ROSTRUM_KEY_ID and ROSTRUM_SECRET, and with the same two
                                     rostrum token --role host --stream talk --link https://example.org

            Each option is a flag, an environment variable, and a line `name = value` in the TOML file that --config
            names: text in quotes, numbers and true or false without, lists as ["one", "two"]. Flags win over the
            environment, and that over the file.

            """
        for option in Option.all { text += option.explanation + "        Environment: \(option.variable)\n" }
        return text
            + """

            Once it serves it prints one line, `ready http=ADDRESS:PORT udp=ADDRESS:PORT tcp=ADDRESS:PORT`, with
            rtmp=, rtmps=, srt=, turn-tls=, turn-tcp= and turn-udp=ADDRESS:PORT where they are on, on standard
            output; its log goes to standard error. SIGTERM and SIGINT end it in good order, with status 0. A start
            that cannot work ends with status 2 when what it was told makes no sense, and with 1 for other reasons.

            SIGHUP has it read its configuration again: who connects from then on gets the certificate that lies in its
            file now, tokens are signed with the key that is named now, and the five --max-… limits hold for what begins
            from then on. All else waits for a restart, as do passwords for TURN, which come of the key of the start.

            `rostrum token`, `doctor`, `backup` and `restore` have options of their own: rostrum token --help.

            `rostrum transcoder` is the process that decodes and encodes pictures and sound. The server starts it
            when it has something to do, and again when it dies; nobody else can use it.

            """
    }

    static var doctor: String {
        """
        usage: rostrum doctor [--json] [OPTION...]

        Looks at the configuration, the secret, the certificate, ports, addresses, the clock, socket buffers, the limit
        on open files, the disk, codecs and the transcoder's confinement, with the options of rostrum serve, and
        prints a line for each: ok, warn or fail, what was found, and what to do. It changes nothing and may run
        beside the server, best as the server's user: sudo -u rostrum rostrum doctor.

          --json
                Print one JSON object instead: {"ok":…,"checks":[{"subject":…,"verdict":…,"text":…,"remedy":…}]}.

        Status 0 says that nothing has failed, 1 that something has.

        """
    }

    static var backup: String {
        """
        usage: rostrum backup DIRECTORY [OPTION...]

        Copies what the server has to remember into a new directory, which nobody else may read: streams with all that
        is known of them, pause pictures, and the files that hold the configuration and the key that signs tokens. The
        server may run, and need not wait: what it said was done before the backup began is in it, and of each later
        commit all or nothing. Certificates are not in it, and recordings only where that is said.

          --recordings
                Copy recordings too; of one that is under way, what there is of it.

          --data DIRECTORY, --config FILE, --secret-file FILE
                Where the server has its data and settings, as for rostrum serve.

        manifest.json in it is written last, and names each file with its SHA-256 digest. A backup that did not come to
        its end is DIRECTORY.partial, and is begun anew by the next one to the same place. Run it as the server's user
        or as root. Status 0 says that the backup is durable, 1 that there is none, with the reason on standard error,
        and 2 that the command makes no sense.

        """
    }

    static var restore: String {
        """
        usage: rostrum restore DIRECTORY [OPTION...]

        Puts what rostrum backup has made where the server finds it, once every file is what it was and the store is
        whole. It writes over nothing: where there is data already, or a server runs, it refuses, and so it does where
        the backup is of a newer version. One that is killed leaves what no server takes for its data; run it again.
        Settings and secrets are left in the backup, for you to compare. Webhooks that waited then are sent again.

          --check
                Only look whether the backup is whole and this program can use it.

          --data DIRECTORY, --config FILE
                Where the server has its data, as for rostrum serve. Root gives what is restored to its owner.

        Status 0 says that it is done, 1 that nothing was restored, with the reason on standard error, and 2 that the
        command makes no sense.

        """
    }

    static var token: String {
        var text = """
            usage: rostrum token --role ROLE --stream NAME [OPTION...]

            Prints a token, signed with the key that the server knows: --key-id and --secret, or what the environment
            or the file that --config names says of them. With --link it prints the link of a page instead:

            rostrum token --role host --stream talk --name Ann --link https://example.org

            """
        for option in TokenCommand.options { text += option.explanation }
        return text + """

              --key-id ID, --secret SECRET, --config FILE
                    The key that signs, as for rostrum serve.

            Status 2 says that it was told what makes no sense, with the reason on standard error.

            """
    }
}

extension Option {
    /// The option's entry in the help: its flag, then its description.
    fileprivate var explanation: String {
        let flag = "--\(name)" + (placeholder.isEmpty ? "" : " \(placeholder)")
        return "\n  \(flag)\n" + help.map { "        \($0)\n" }.joined()
    }
}
