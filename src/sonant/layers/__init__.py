"""Parts of models that know no task: convolution, attention, quantizers, dropout."""
