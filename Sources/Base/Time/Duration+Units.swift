extension Duration {
    /// The span in milliseconds, rounded toward zero, limited to about 290 years so that adding it cannot overflow.
    package var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds.clamped(to: -9_000_000_000...9_000_000_000) * 1000 + attoseconds / 1_000_000_000_000_000
    }

    /// The span in seconds, for ratios and for output.
    package var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}

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
}
