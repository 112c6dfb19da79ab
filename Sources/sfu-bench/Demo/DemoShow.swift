/// A stream of the demo: its title, its picture and sound, and what its audience writes.
struct DemoShow: Sendable {
    /// Name of the stream in the API.
    let stream: String
    let title: String
    let host: String
    let scene: DemoScene
    let sound: DemoSound
    /// Comments of the audience, in any order.
    let remarks: [String]
    /// Question of the host's poll; `answers` are its options.
    let question: String
    let answers: [String]

    /// In the order in which they are started.
    static let all = [
        DemoShow(
            stream: "aurora", title: "Northern lights, live from the fjord", host: "Ida", scene: .aurora,
            sound: DemoSound(chord: [110, 164.8, 220, 277.2], melody: [554.4, 659.3, 880, 659.3]),
            remarks: [
                "It is so green tonight", "How cold is it up there?", "Never seen one this bright",
                "The mountains look unreal", "Does it make a sound?", "Good evening from Lisbon",
                "I could watch this for hours", "There, on the left!", "What a night 💚",
            ],
            question: "Should we wait for the red ones?", answers: ["Yes, all night", "One more hour"]),
        DemoShow(
            stream: "harbour", title: "Sunset at the old harbor", host: "Rui", scene: .harbour,
            sound: DemoSound(chord: [98, 146.8, 196, 246.9], melody: [392, 493.9, 587.3, 493.9]),
            remarks: [
                "That sun 😍", "Is the little boat yours?", "I can almost smell the sea",
                "Which harbor is this?", "The water is so calm", "Greetings from the train",
                "Turn the sound up, please", "Best part of my day", "Look at the reflections",
            ],
            question: "What should we cook later?", answers: ["Sardines", "Pasta", "Just olives"]),
        DemoShow(
            stream: "city", title: "Night shift: the city from the 30th floor", host: "Noor", scene: .city,
            sound: DemoSound(chord: [130.8, 155.6, 196, 233.1], melody: [622.3, 466.2, 523.3, 466.2]),
            remarks: [
                "Who is still at work up there?", "I count twelve lit windows", "Love the moon tonight",
                "Which floor is yours?", "So many cars at this hour", "Hello from the night bus",
                "Perfect for falling asleep", "A plane, over there?", "This is cozy ✨",
            ],
            question: "Tea or coffee for the rest of the night?", answers: ["Tea", "Coffee", "Both"]),
    ]

    /// The gifts of all shows, from cheap to expensive.
    static let gifts = [
        DemoGift(id: "rose", name: "Rose", picture: "🌹", price: 100),
        DemoGift(id: "cake", name: "Cake", picture: "🎂", price: 500),
        DemoGift(id: "star", name: "Star", picture: "⭐", price: 2_000),
    ]
    static let currency = "EUR"

    /// The viewers of every show.
    static let people = ["Mia", "Jonas", "Aiko", "Tariq", "Lena", "Sam"]
}

/// A gift in the demo's shop; no payment is involved.
struct DemoGift: Sendable {
    let id: String
    let name: String
    let picture: String
    /// In cents.
    let price: Int
}
