extension Duration {
    var magnitude: Duration { self < .zero ? .zero - self : self }
}
