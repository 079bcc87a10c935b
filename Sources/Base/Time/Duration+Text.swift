/// Spans for people.
extension Duration {
    /// The span in its two largest units, such as `3 h 20 min`.
    package var inTwoUnits: String {
        let seconds = Int64(inSeconds)
        let units: [(name: String, seconds: Int64)] = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)]
        guard let first = units.firstIndex(where: { seconds >= $0.seconds }) else { return "0 s" }
        let whole = "\(seconds / units[first].seconds) \(units[first].name)"
        let rest = seconds % units[first].seconds
        guard first + 1 < units.count, rest >= units[first + 1].seconds else { return whole }
        return "\(whole) \(rest / units[first + 1].seconds) \(units[first + 1].name)"
    }

    /// The span with milliseconds below a second, tenths below ten seconds, and otherwise its two largest units.
    package var inFineUnits: String {
        let milliseconds = wholeMilliseconds
        if milliseconds == 0 { return "0 s" }
        if milliseconds < 1000 { return "\(milliseconds) ms" }
        if milliseconds < 10_000 { return "\(milliseconds / 1000).\(milliseconds % 1000 / 100) s" }
        return inTwoUnits
    }

    /// The span in the largest unit of which it is a whole number, such as `30 seconds` or `5 minutes`.
    package var inWholeUnits: String {
        let seconds = Int(wholeMilliseconds / 1000)
        let units = [("day", 86_400), ("hour", 3600), ("minute", 60)]
        let unit = units.first { seconds >= $0.1 && seconds.isMultiple(of: $0.1) }
        guard let (name, length) = unit else { return seconds.counted("second") }
        return (seconds / length).counted(name)
    }

    /// In days, with one decimal.
    package var inDays: String {
        let tenths = Int((inSeconds / 8640).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
