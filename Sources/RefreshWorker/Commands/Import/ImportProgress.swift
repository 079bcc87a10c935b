import Base

/// The progress of an import, as one line of a terminal that is redrawn a few times a second.
///
/// Without a terminal it is silent.
final class ImportProgress {
    private static let interval: Duration = .milliseconds(200)

    private let noun: String
    private let line = TerminalProgress()
    private let time: any TimeSource
    private let started: BootInstant
    private var drawnAt: BootInstant?

    /// Creates the progress of reading `noun`, such as `grants`.
    init(of noun: String, time: any TimeSource) {
        self.noun = noun
        self.time = time
        started = time.sinceBoot
    }

    /// Writes a permanent line above the progress.
    func writeLine(_ text: String) {
        line.clear()
        drawnAt = nil
        Output.error.line(text)
    }

    /// Shows the progress, with the fraction of the input that was read, if its size is known.
    func show(_ tally: ImportTally, done fraction: Double?) {
        let now = time.sinceBoot
        guard drawnAt.map({ now - $0 >= Self.interval }) ?? true else { return }
        drawnAt = now
        line.show(Self.text(tally, of: noun, done: fraction, elapsed: now - started))
    }

    static func text(_ tally: ImportTally, of noun: String, done fraction: Double?, elapsed: Duration) -> String {
        let rate = elapsed > .zero ? Int(Double(tally.read) / elapsed.inSeconds) : 0
        let text = "\(tally.read) \(noun) read, \(tally.bad) bad, \(rate)/s"
        guard let fraction, fraction > 0, fraction < 1 else { return text }
        let rest: Duration = .seconds(elapsed.inSeconds * (1 - fraction) / fraction)
        return "\(text), \(Int(fraction * 100)) %, \(rest.inTwoUnits) left"
    }
}
